// Causal depthwise convolution over the x, B and C parts of zxbcdt, then SiLU (docs/model/mamba.md#convolution).
//
//   mamba_conv        zxbcdt [S,B,*] -> xbc [S,B,inner+2 bc]; parameters weight [inner+2 bc,1,w], bias [inner+2 bc]
//   mamba_conv_grad   dxbc, zxbcdt -> gradient of the x, B, C part [S,B,inner+2 bc]; adds to those of weight and bias
//
// Computed in fp32 (fp64 for fp64), the results rounded to the dtype of zxbcdt. The backward reads zxbcdt and computes
// the sum before SiLU again. The window w is short (4), so the convolution is a sum of w shifted products: one form for
// all dtypes and devices.
#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>

#include <algorithm>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// The x, B and C part of zxbcdt, [S,B,inner+2 bc]: the input of the convolution.
at::Tensor ConvolutionInput(const ComputeContext& context, const at::Tensor& zxbcdt) {
  const int64_t inner = context.instruction.integer("inner"), bc = context.instruction.integer("bc");
  return Wide(zxbcdt.narrow(2, inner, inner + 2 * bc));
}

// The weight of the input `ago` positions earlier, for each channel. The last tap belongs to the position itself.
at::Tensor Tap(const at::Tensor& weight, int64_t ago) {
  return weight.select(2, weight.size(2) - 1 - ago).select(1, 0);
}

at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  at::Tensor sum = (x * Tap(weight, 0)).add_(bias);
  // min: a sequence may be shorter than the window.
  for (int64_t ago = 1; ago < std::min(weight.size(2), x.size(0)); ++ago) {
    const int64_t length = x.size(0) - ago;
    sum.narrow(0, ago, length).addcmul_(x.narrow(0, 0, length), Tap(weight, ago));
  }
  return sum;
}

}  // namespace

Tensors RunMambaConv(const ComputeContext& context) {
  const at::Tensor x = ConvolutionInput(context, context.inputs[0]);
  const at::Tensor sum = Convolve(x, Wide(context.parameters[0]), Wide(context.parameters[1]));
  return {Narrow(at::silu(sum), context.inputs[0])};
}

Tensors RunMambaConvGrad(const ComputeContext& context) {
  const at::Tensor x = ConvolutionInput(context, context.inputs[1]), weight = Wide(context.parameters[0]);
  const at::Tensor dsum = at::silu_backward(Wide(context.inputs[0]), Convolve(x, weight, Wide(context.parameters[1])));
  context.gradients[1].add_(dsum.sum(at::IntArrayRef({0, 1})));
  // The transpose: the output at a later position read this input, so its gradient flows back.
  at::Tensor dx = dsum * Tap(weight, 0);
  Tap(context.gradients[0], 0).add_((dsum * x).sum(at::IntArrayRef({0, 1})));
  for (int64_t ago = 1; ago < std::min(weight.size(2), x.size(0)); ++ago) {
    const int64_t length = x.size(0) - ago;
    const at::Tensor later = dsum.narrow(0, ago, length);
    dx.narrow(0, 0, length).addcmul_(later, Tap(weight, ago));
    Tap(context.gradients[0], ago).add_((later * x.narrow(0, 0, length)).sum(at::IntArrayRef({0, 1})));
  }
  return {Narrow(dx, context.inputs[1])};
}

}  // namespace planwright::executor::ops
