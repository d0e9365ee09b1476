// Causal depthwise convolution over the x, B and C parts of zxbcdt, then SiLU (facts 3.5). The window is short, so it
// is a sum of shifted products; any dtype and device takes that road.
#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>

#include <algorithm>

#include "executor/ops/handler.h"
#include "executor/ops/numerics.h"

namespace planwright::executor::ops {
namespace {

// [S,B,channels] of zxbcdt that the convolution reads.
at::Tensor Convolved(const ComputeContext& context, const at::Tensor& zxbcdt) {
  const int64_t inner = context.instruction.integer("inner"), bc = context.instruction.integer("bc");
  return Wide(zxbcdt.narrow(2, inner, inner + 2 * bc));
}

// Weight of the input `ago` positions back, per channel: the last tap is the present.
at::Tensor Tap(const at::Tensor& weight, int64_t ago) {
  return weight.select(2, weight.size(2) - 1 - ago).select(1, 0);
}

at::Tensor Convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  at::Tensor sum = (x * Tap(weight, 0)).add_(bias);
  for (int64_t ago = 1; ago < std::min(weight.size(2), x.size(0)); ++ago) {
    const int64_t length = x.size(0) - ago;
    sum.narrow(0, ago, length).addcmul_(x.narrow(0, 0, length), Tap(weight, ago));
  }
  return sum;
}

}  // namespace

Tensors RunMambaConv(const ComputeContext& context) {
  const at::Tensor x = Convolved(context, context.inputs[0]);
  const at::Tensor sum = Convolve(x, Wide(context.parameters[0]), Wide(context.parameters[1]));
  return {Narrow(at::silu(sum), context.inputs[0])};
}

Tensors RunMambaConvGrad(const ComputeContext& context) {
  const at::Tensor x = Convolved(context, context.inputs[1]), weight = Wide(context.parameters[0]);
  const at::Tensor dsum = at::silu_backward(Wide(context.inputs[0]), Convolve(x, weight, Wide(context.parameters[1])));
  context.gradients[1].add_(dsum.sum(at::IntArrayRef({0, 1})));
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
