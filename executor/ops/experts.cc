// The routed experts of this rank: down(relu(up x)^2 * row weight) (docs/model/mixture_of_experts.md#routed-experts).
// X received rows, L local experts, P source ranks. With expert_tp a rank has a part of the width ffn of each of its
// experts and the rows of its whole expert_tp group: out, drows and drow_weights are then terms of sums over expert_tp.
//
//   experts        rows [X,H], row_weights [X], counts i64 [P,L] -> out [X,H], pre [X,ffn]
//                  parameters up [L,ffn,H], down [L,H,ffn]
//   experts_grad   dout, rows, row_weights, pre, counts -> drows [X,H], drow_weights [X]
//                  adds to the gradients of up and down. The first of a step writes them
//                  (ComputeContext::writes_gradients)
//
// Inputs and outputs have the order in which rows were received (by source rank, local expert, token), also `pre`, the
// result of up before the activation. Products have the dtype of the rows, the activation is computed in fp32 (fp64),
// and gradients of weights are added in the dtype of their buffers. The backward reads the rows, their weights and pre
// (docs/model/mixture_of_experts.md#backward).
#include "executor/ops/experts.h"

#include <ATen/TensorOperators.h>

#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {

Tensors ExpertsOfRows(const ExpertRows& order, const ComputeContext& context) {
  const at::Tensor &received = context.inputs[0], &up = context.parameters[0], &down = context.parameters[1];
  const at::Tensor pre = order.Product(order.Sort(received), up.transpose(1, 2));
  // The weight multiplies the activation and not the output of down. So its gradient follows from that of the
  // activation, and nothing else is kept for it.
  const at::Tensor act = Wide(pre).relu().square_().mul_(order.Sort(context.inputs[1]).unsqueeze(-1));
  return {order.Unsort(order.Product(Narrow(act, received), down.transpose(1, 2))), order.Unsort(pre)};
}

Tensors ExpertsGradOfRows(const ExpertRows& order, const ComputeContext& context) {
  const at::Tensor &up = context.parameters[0], &down = context.parameters[1], &received = context.inputs[1];
  const at::Tensor dout = order.Sort(context.inputs[0]), rows = order.Sort(received);
  const at::Tensor weight = Wide(order.Sort(context.inputs[2])).unsqueeze(-1);
  const at::Tensor positive = Wide(order.Sort(context.inputs[3])).relu(),
                   squared = positive.square();  // d(relu(x)^2) = 2 relu(x)

  if (context.learns())
    order.AddOuterProducts(context.gradients[1], dout, Narrow(squared * weight, rows), context.writes_gradients);
  const at::Tensor dact = Wide(order.Product(dout, down));
  const at::Tensor dweight = (dact * squared).sum(-1);
  const at::Tensor dpre = Narrow((dact * positive).mul_(weight).mul_(2), rows);
  if (context.learns()) order.AddOuterProducts(context.gradients[0], dpre, rows, context.writes_gradients);
  return {order.Unsort(order.Product(dpre, up)), Narrow(order.Unsort(dweight), context.inputs[2])};
}

Tensors RunExperts(const ComputeContext& context) {
  const at::Tensor& received = context.inputs[0];
  return ExpertsOfRows(
      ExpertRows(context.inputs[2], context.parameters[0].size(0), received.size(0), received.device()), context);
}

Tensors RunExpertsGrad(const ComputeContext& context) {
  const at::Tensor& received = context.inputs[1];
  return ExpertsGradOfRows(
      ExpertRows(context.inputs[4], context.parameters[0].size(0), received.size(0), received.device()), context);
}

}  // namespace planwright::executor::ops
