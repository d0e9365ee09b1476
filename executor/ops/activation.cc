// Squared ReLU, and GELU in its tanh form.
#include <ATen/TensorOperators.h>
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

}  // namespace planwright::executor::ops
