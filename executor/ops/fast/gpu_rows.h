// How a tensor must lie for kernels that read it, or move its rows, 16 bytes at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace planwright::executor::ops {

// Contiguous, from a multiple of 16 bytes on.
inline bool LiesInVectors(const at::Tensor& x) {
  return x.is_contiguous() && reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

// The same, and all of its rows (along the last dim) start at multiples of 16 bytes.
inline bool HasAlignedRows(const at::Tensor& x) {
  return LiesInVectors(x) && x.dim() > 0 && x.size(-1) * x.element_size() % 16 == 0;
}

}  // namespace planwright::executor::ops
