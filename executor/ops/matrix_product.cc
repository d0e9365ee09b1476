#include "executor/ops/matrix_product.h"

#include <ATen/ops/mm.h>

namespace planwright::executor::ops {

void AddProduct(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (sum.scalar_type() == a.scalar_type()) {
    sum.addmm_(a, b);
  } else if (sum.is_cuda()) {
    sum.add_(at::mm(a, b, sum.scalar_type()));
  } else {
    sum.addmm_(a.to(sum.scalar_type()), b.to(sum.scalar_type()));
  }
}

}  // namespace planwright::executor::ops
