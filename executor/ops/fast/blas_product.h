// Matrix products with something done to them before they are rounded, by cuBLASLt: one pass, in which the product
// itself is never written. LibTorch has none of them: its addmm copies first, and then adds in place.
//
// All operands are bf16 on one GPU, contiguous from a multiple of 16 bytes on; their widths are multiples of 8, and
// there is one row or more. Sums are fp32, and each element is rounded once.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor::ops {

// x W^T + residual, + bias if that is defined: a new tensor of the residual's shape. x [...,i], weight [o,i], residual
// [...,o] with as many rows, bias [o].
at::Tensor SummedProduct(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& residual,
                         const at::Tensor& bias);

struct GeluOfProduct {
  at::Tensor pre, gelu;
};
// pre = x W^T, + bias if that is defined, and gelu(pre) in its tanh form: new tensors [...,o].
GeluOfProduct ProductAndGelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// (dy W) gelu'(pre), gelu in its tanh form: a new tensor of the shape of pre. dy [...,o], weight [o,i], pre [...,i]
// with as many rows.
at::Tensor ProductTimesGeluSlope(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& pre);

}  // namespace planwright::executor::ops
