// Activations, sums, joins and slices. Inputs and outputs may have any leading dims. Each result is computed in the
// dtype of its inputs; none of these operations reduces over a dim.
//
//   squared_relu        x -> relu(x)^2; the backward reads x (docs/model/mixture_of_experts.md#shared-expert)
//   gelu                x -> GELU in its tanh form; the backward reads x (docs/model/vision_encoder.md#layers)
//   add                 x, y, ... -> their sum, added from left to right
//   add_residual_bias   x, y -> x + y + bias; the backward is bias_grad, in linear.cc
//   concat              x, y, ... -> joined along `dim`
//   local_slice         x -> this rank's part of `dim` along the tp axis
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

Tensors RunSquaredRelu(const ComputeContext& context) { return {context.inputs[0].relu().square_()}; }

Tensors RunSquaredReluGrad(const ComputeContext& context) {
  return {context.inputs[1].relu().mul_(2).mul_(context.inputs[0])};
}

Tensors RunGelu(const ComputeContext& context) { return {at::gelu(context.inputs[0], "tanh")}; }

Tensors RunGeluGrad(const ComputeContext& context) {
  return {at::gelu_backward(context.inputs[0], context.inputs[1], "tanh")};
}

Tensors RunAdd(const ComputeContext& context) {
  at::Tensor sum = context.inputs[0] + context.inputs[1];
  for (size_t i = 2; i < context.inputs.size(); ++i) sum.add_(context.inputs[i]);
  return {sum};
}

Tensors RunAddResidualBias(const ComputeContext& context) {
  return {(context.inputs[0] + context.inputs[1]).add_(context.parameters[0])};
}

Tensors RunConcat(const ComputeContext& context) {
  return {at::cat(context.inputs, context.instruction.integer("dim"))};
}

Tensors RunLocalSlice(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const int64_t dim = context.instruction.integer("dim"), tp = context.call.tp;
  TORCH_CHECK(x.size(dim) % tp == 0, "dim ", dim, " of ", x.sizes(), " cannot be cut in ", tp, " equal parts");
  const int64_t part = x.size(dim) / tp;
  // A copy: a view would keep the memory of the whole tensor alive as long as the part, which the plan does not count.
  return {x.narrow(dim, context.call.tp_rank * part, part).clone(at::MemoryFormat::Contiguous)};
}

}  // namespace planwright::executor::ops
