// RMSNorm (docs/model/language_model.md#rmsnorm) and LayerNorm (docs/model/vision_encoder.md#layers) over the last dim
// H.
//
//   rms_norm          x [...,H] -> y [...,H], scale [...,1] = 1/rms; parameter weight [H]
//   rms_norm_grad     dy, x, scale -> dx; adds to the gradient of weight
//   layer_norm        x [...,H] -> y, mean [...,1], scale [...,1] = 1/deviation; parameters weight, bias [H]
//   layer_norm_grad   dy, x, mean, scale -> dx; adds to the gradients of weight and bias
//
// Statistics are fp32 (fp64 for fp64); y and dx have the dtype of x. The backward reads x and the statistics. LayerNorm
// is LibTorch's, and gets wide tensors: of others its statistics on a CPU, and gradients of weights on a GPU, would
// have the dtype of x.
#include <ATen/TensorOperators.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {

Tensors RunRmsNorm(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const at::Tensor wide = Wide(x);
  const at::Tensor scale = wide.square().mean({-1}, true).add_(context.instruction.real("eps")).rsqrt_();
  return {Narrow((wide * scale).mul_(context.parameters[0]), x), scale};
}

Tensors RunRmsNormGrad(const ComputeContext& context) {
  const at::Tensor dy = Wide(context.inputs[0]);
  const at::Tensor& scale = context.inputs[2];
  const at::Tensor unit = Wide(context.inputs[1]) * scale;  // x / rms
  if (context.learns()) context.gradients[0].add_(AsRows(dy * unit).sum(0));
  const at::Tensor dunit = dy * context.parameters[0];
  // x / rms does not change with the length of x, so the part of the gradient along x is removed.
  const at::Tensor along = (dunit * unit).mean({-1}, true);
  return {Narrow((dunit - unit * along).mul_(scale), context.inputs[1])};
}

Tensors RunLayerNorm(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  auto [y, mean, scale] = at::native_layer_norm(Wide(x), {x.size(-1)}, Wide(context.parameters[0]),
                                                Wide(context.parameters[1]), context.instruction.real("eps"));
  return {Narrow(y, x), mean, scale};
}

Tensors RunLayerNormGrad(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[1];
  const at::Tensor weight = Wide(context.parameters[0]);
  const auto [dx, dweight, dbias] =
      at::native_layer_norm_backward(Wide(context.inputs[0]).contiguous(), Wide(x), {x.size(-1)}, context.inputs[2],
                                     context.inputs[3], weight, weight, {true, context.learns(), context.learns()});
  if (context.learns()) {
    context.gradients[0].add_(dweight);
    context.gradients[1].add_(dbias);
  }
  return {Narrow(dx, x)};
}

}  // namespace planwright::executor::ops
