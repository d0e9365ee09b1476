#include "executor/ops/tensor_math.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>

#include "executor/tensors.h"

namespace planwright::executor::ops {

at::Tensor Indices(const std::vector<int64_t>& values, at::Device device) {
  return ToDevice(at::tensor(values, at::TensorOptions().dtype(at::kLong)), device);
}

void AddProduct(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
  } else if (sum.is_cuda()) {
    sum.add_(at::mm(a, b, sum.scalar_type()));  // cuBLAS writes an fp32 product of bf16 matrices
  } else {
    sum.addmm_(a.to(sum.scalar_type()), b.to(sum.scalar_type()));  // CPUs have no such product: widen the factors
  }
}

}  // namespace planwright::executor::ops
