// Matrix products whose sum is kept wide.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor::ops {

// sum += a b. With bf16 factors and an fp32 sum the product is never rounded to bf16.
void AddProduct(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace planwright::executor::ops
