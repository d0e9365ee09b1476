// A matrix product to which something is added before it is rounded, by cuBLASLt: one pass, in which what is added is
// read and the product itself is never written. LibTorch's addmm copies first, and then adds in place.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor::ops {

// x W^T + residual, + bias if that is defined: a new tensor of the residual's shape. Sums are fp32, and each element is
// rounded once. All are bf16 on one GPU, contiguous from a multiple of 16 bytes on: x [...,i] with one row or more,
// weight [o,i], residual [...,o] with as many rows, bias [o]; i and o are multiples of 8.
at::Tensor SummedProduct(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& residual,
                         const at::Tensor& bias);

}  // namespace planwright::executor::ops
