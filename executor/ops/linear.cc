// y = x W^T (+ bias), and its gradients.
#include <ATen/ops/mm.h>

#include "executor/ops/handler.h"
#include "executor/ops/matrix_product.h"
#include "executor/ops/numerics.h"

namespace planwright::executor::ops {

Tensors RunLinear(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const at::Tensor& weight = context.parameters[0];
  at::Tensor y = at::mm(AsRows(x), weight.t());
  if (context.parameters.size() > 1) y.add_(context.parameters[1]);
  return {y.view(WithWidth(x, weight.size(0)))};
}

Tensors RunLinearInputGrad(const ComputeContext& context) {
  const at::Tensor& dy = context.inputs[0];
  const at::Tensor& weight = context.parameters[0];
  return {at::mm(AsRows(dy), weight).view(WithWidth(dy, weight.size(1)))};
}

Tensors RunLinearWeightGrad(const ComputeContext& context) {
  const at::Tensor dy = AsRows(context.inputs[0]);
  AddProduct(context.gradients[0], dy.t(), AsRows(context.inputs[1]));
  if (context.gradients.size() > 1) context.gradients[1].add_(dy.sum(0, false, WideType(dy)));
  return {};
}

Tensors RunBiasGrad(const ComputeContext& context) {
  const at::Tensor dy = AsRows(context.inputs[0]);
  context.gradients[0].add_(dy.sum(0, false, WideType(dy)));
  return {};
}

}  // namespace planwright::executor::ops
