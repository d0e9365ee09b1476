// The routed experts (facts 3.7): down(relu(up x)^2 * row weight). `pre`, what the backward reads, is ordered by
// expert.
#include <ATen/TensorOperators.h>

#include "executor/ops/expert_rows.h"
#include "executor/ops/handler.h"
#include "executor/ops/numerics.h"

namespace planwright::executor::ops {

Tensors RunExperts(const ComputeContext& context) {
  const at::Tensor &received = context.inputs[0], &up = context.parameters[0], &down = context.parameters[1];
  const ExpertRows order(context.inputs[2], up.size(0), received.size(0), received.device());
  const at::Tensor pre = order.Product(order.Sort(received), up.transpose(1, 2));
  const at::Tensor act = Wide(pre).relu().square_().mul_(order.Sort(context.inputs[1]).unsqueeze(-1));
  return {order.Unsort(order.Product(Narrow(act, received), down.transpose(1, 2))), pre};
}

Tensors RunExpertsGrad(const ComputeContext& context) {
  const at::Tensor &up = context.parameters[0], &down = context.parameters[1], &received = context.inputs[1];
  const ExpertRows order(context.inputs[4], up.size(0), received.size(0), received.device());
  const at::Tensor dout = order.Sort(context.inputs[0]), rows = order.Sort(received);
  const at::Tensor weight = Wide(order.Sort(context.inputs[2])).unsqueeze(-1);
  const at::Tensor positive = Wide(context.inputs[3]).relu(), squared = positive.square();

  order.AddOuterProducts(context.gradients[1], dout, Narrow(squared * weight, rows));
  const at::Tensor dact = Wide(order.Product(dout, down));
  const at::Tensor dweight = (dact * squared).sum(-1);
  const at::Tensor dpre = Narrow((dact * positive).mul_(weight).mul_(2), rows);
  order.AddOuterProducts(context.gradients[0], dpre, rows);
  return {order.Unsort(order.Product(dpre, up)), Narrow(order.Unsort(dweight), context.inputs[2])};
}

}  // namespace planwright::executor::ops
