// Precision and shapes that the handlers share (docs/training/layout_independence.md#precision).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace planwright::executor::ops {

// The dtype of a computation on `x`: fp64 stays fp64, every other float is computed in fp32. Router, softmax, norm
// statistics, the Mamba scan and reductions need fp32 at least.
inline at::ScalarType WideType(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}
inline at::Tensor Wide(const at::Tensor& x) { return x.to(WideType(x)); }

// Rounds to the dtype of `like`. No copy if `x` has it already.
inline at::Tensor Narrow(const at::Tensor& x, const at::Tensor& like) { return x.to(like.scalar_type()); }

// [..., width] as [rows, width]. The row count is computed here: with no rows at all, LibTorch cannot infer a -1.
inline at::Tensor AsRows(const at::Tensor& x) {
  int64_t rows = 1;
  for (int64_t dim = 0; dim + 1 < x.dim(); ++dim) rows *= x.size(dim);
  return x.reshape({rows, x.size(-1)});
}

// The shape of `x` with another last dim.
inline std::vector<int64_t> WithWidth(const at::Tensor& x, int64_t width) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = width;
  return shape;
}

// The same memory as elements of 16 bytes, which strided copies move several times faster than narrow ones; `x` itself
// if it does not lie so that `features` of its last dim are a whole number of them.
at::Tensor InVectors(const at::Tensor& x, int64_t features);

// A vector as an i64 tensor on `device`. The host does not wait.
at::Tensor Indices(const std::vector<int64_t>& values, at::Device device);

// sum += a b, for matrices. With bf16 factors and an fp32 sum the product is never rounded to bf16: weight gradients
// are sums over microbatches and lose small terms otherwise.
void AddProduct(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);
// product = a b, by the same rules. What was there is not read.
void SetProduct(const at::Tensor& product, const at::Tensor& a, const at::Tensor& b);

}  // namespace planwright::executor::ops
