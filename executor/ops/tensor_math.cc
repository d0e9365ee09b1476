#include "executor/ops/tensor_math.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>

#include <cstdint>

#include "executor/base/tensors.h"

namespace planwright::executor::ops {

at::Tensor Indices(const std::vector<int64_t>& values, at::Device device) {
  return ToDevice(at::tensor(values, at::TensorOptions().dtype(at::kLong)), device);
}

at::Tensor InVectors(const at::Tensor& x, int64_t features) {
  constexpr at::ScalarType kVector = at::kComplexDouble;  // only moved, so its meaning does not matter
  constexpr int64_t kBytes = 16;
  const int64_t count = kBytes / x.element_size();
  const bool lies = x.numel() > 0 && x.is_contiguous() && x.storage_offset() % count == 0 &&
                    reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kBytes == 0;
  return lies && features % count == 0 && x.size(-1) % count == 0 ? x.view(kVector) : x;
}

void AddProduct(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
  } else if (sum.is_cuda()) {
    at::Tensor out = sum;
    at::addmm_out(out, out, a, b, sum.scalar_type());  // cuBLAS adds products of bf16 matrices to an fp32 sum
  } else {
    sum.addmm_(a.to(sum.scalar_type()), b.to(sum.scalar_type()));  // CPUs have no such product: widen the factors
  }
}

void SetProduct(const at::Tensor& product, const at::Tensor& a, const at::Tensor& b) {
  // LibTorch would give an output of another shape new memory, apart from the bucket.
  TORCH_CHECK(product.dim() == 2 && product.size(0) == a.size(0) && product.size(1) == b.size(1), "a product of ",
              a.sizes(), " and ", b.sizes(), " has not the shape ", product.sizes());
  at::Tensor out = product;
  if (product.scalar_type() == a.scalar_type()) {
    at::mm_out(out, a, b);
  } else if (product.is_cuda() && a.size(1) > 0) {
    at::mm_out(out, a, b, product.scalar_type());
  } else {
    at::mm_out(out, a.to(product.scalar_type()), b.to(product.scalar_type()));
  }
}

}  // namespace planwright::executor::ops
