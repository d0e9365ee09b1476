// What a tensor must be for kernels that move its rows 16 bytes at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace planwright::executor::ops {

// A contiguous tensor on a GPU whose rows (along the last dim) all start at multiples of 16 bytes.
inline bool HasAlignedRows(const at::Tensor& x) {
  return x.is_cuda() && x.is_contiguous() && x.dim() > 0 && x.size(-1) * x.element_size() % 16 == 0 &&
         reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

}  // namespace planwright::executor::ops
