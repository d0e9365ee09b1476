// RMSNorm of y * SiLU(z) over groups of channels: the gate comes before the norm (docs/model/mamba.md#gated-norm).
//
//   gated_norm        y [S,B,inner], zxbcdt [S,B,*] (its first `inner` columns are z) -> yn [S,B,inner],
//                     scale [S,B,inner/group_size] = 1/rms; parameter weight [inner]
//   gated_norm_grad   dyn, y, zxbcdt, scale -> dy, dz [S,B,inner]; adds to the gradient of weight
//
// With parameter_cp the features are those of this cp rank, the weight that of all (parameter_part.h).
//
// Computed in fp32 (fp64 for fp64); yn, dy and dz are rounded to the dtype of the inputs, scale stays wide. The
// backward reads y, z and scale, and computes the gate again.
#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>

#include "executor/ops/handler.h"
#include "executor/ops/parameter_part.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

at::Tensor Gate(const ComputeContext& context, const at::Tensor& zxbcdt) {
  return Wide(zxbcdt.narrow(2, 0, context.instruction.integer("inner")));
}

// [S,B,inner] as [S,B,groups,group_size].
at::Tensor InGroups(const ComputeContext& context, const at::Tensor& x) {
  const int64_t size = context.instruction.integer("group_size");
  return x.reshape({x.size(0), x.size(1), x.size(2) / size, size});
}

ParameterPart GatePart(const ComputeContext& context) {
  return ParameterPart(context, {context.instruction.integer("inner")});
}

}  // namespace

Tensors RunGatedNorm(const ComputeContext& context) {
  const at::Tensor& y = context.inputs[0];
  const at::Tensor gated = InGroups(context, at::silu(Gate(context, context.inputs[1])).mul_(y));
  const at::Tensor scale = gated.square().mean({-1}).add_(context.instruction.real("eps")).rsqrt_();
  const at::Tensor normed = (gated * scale.unsqueeze(-1)).view(y.sizes());
  return {Narrow(normed.mul_(GatePart(context).Of(context.parameters[0])), y), scale};
}

Tensors RunGatedNormGrad(const ComputeContext& context) {
  const at::Tensor dyn = Wide(context.inputs[0]), y = Wide(context.inputs[1]), z = Gate(context, context.inputs[2]);
  const at::Tensor scale = context.inputs[3].unsqueeze(-1), gate = at::silu(z);
  const at::Tensor unit = InGroups(context, gate * y) * scale;
  const ParameterPart own = GatePart(context);
  if (context.learns()) own.AddTo(context.gradients[0], (dyn * unit.view(dyn.sizes())).sum(at::IntArrayRef({0, 1})));
  const at::Tensor dunit = InGroups(context, dyn * own.Of(context.parameters[0]));
  // The norm removes the length of a vector, so the part of its gradient along the vector itself is removed too.
  const at::Tensor along = (dunit * unit).mean({-1}, true);
  const at::Tensor dgated = (dunit - unit * along).mul_(scale).view(dyn.sizes());
  const at::Tensor dz = at::silu_backward(dgated * y, z);
  return {Narrow(dgated * gate, context.inputs[1]), Narrow(dz, context.inputs[2])};
}

}  // namespace planwright::executor::ops
