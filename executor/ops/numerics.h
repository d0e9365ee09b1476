// Shorthands shared by the handlers.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor::ops {

// The dtype in which a value is computed with: fp64 stays, everything else is fp32 (facts give fp32 as the minimum for
// router, softmax, statistics and scan).
inline at::ScalarType WideType(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}
inline at::Tensor Wide(const at::Tensor& x) { return x.to(WideType(x)); }

// Back to the dtype of `like`; no copy when it is already.
inline at::Tensor Narrow(const at::Tensor& x, const at::Tensor& like) { return x.to(like.scalar_type()); }

// [..., width] as [rows, width]. Says the row count itself: -1 cannot be inferred when there are no rows.
inline at::Tensor AsRows(const at::Tensor& x) {
  int64_t rows = 1;
  for (int64_t dim = 0; dim + 1 < x.dim(); ++dim) rows *= x.size(dim);
  return x.reshape({rows, x.size(-1)});
}

// Shape of `x` with another last dim.
inline std::vector<int64_t> WithWidth(const at::Tensor& x, int64_t width) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = width;
  return shape;
}

}  // namespace planwright::executor::ops
