// The routed experts of this rank with a gate: down(silu(gate x) * up x * row weight)
// (docs/model/decoder.md#gated-experts). X received rows, L local experts, P source ranks. The rows of a matrix
// gate_up are the gate's and then up's, ffn of each. With expert_tp a rank has a part of both.
//
//   gated_experts        rows [X,H], row_weights [X], counts i64 [P,L] -> out [X,H], pre [X,2 ffn]
//                        parameters gate_up [L,2 ffn,H], down [L,H,ffn]
//   gated_experts_grad   dout, rows, row_weights, pre, counts -> drows [X,H], drow_weights [X]
//                        adds to the gradients of gate_up and down. The first of a step writes them
//                        (ComputeContext::writes_gradients)
//
// Orders of rows and precision are those of `experts` (experts.cc): the activation is computed in fp32 (fp64).
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "executor/ops/experts.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

struct GatedRows {
  at::Tensor gate, up, share;  // wide; share: sigmoid(gate)
  GatedRows(const ComputeContext& context, const at::Tensor& pre) {
    const int64_t width = context.instruction.integer("ffn");
    TORCH_CHECK(pre.size(1) == 2 * width, "features of ", pre.sizes(), " for a gate of ", width);
    gate = Wide(pre.narrow(1, 0, width)), up = Wide(pre.narrow(1, width, width)), share = gate.sigmoid();
  }
  at::Tensor activation() const { return (gate * share).mul_(up); }
};

ExpertRows RowsOf(const ComputeContext& context, const at::Tensor& received, const at::Tensor& counts) {
  return {counts, context.parameters[0].size(0), received.size(0), received.device()};
}

}  // namespace

Tensors GatedExpertsOfRows(const ExpertRows& order, const ComputeContext& context) {
  const at::Tensor &received = context.inputs[0], &gate_up = context.parameters[0], &down = context.parameters[1];
  const at::Tensor pre = order.Product(order.Sort(received), gate_up.transpose(1, 2));
  // The weight multiplies the activation, as in `experts`: nothing else is kept for its gradient.
  const at::Tensor act = GatedRows(context, pre).activation().mul_(order.Sort(context.inputs[1]).unsqueeze(-1));
  return {order.Unsort(order.Product(Narrow(act, received), down.transpose(1, 2))), order.Unsort(pre)};
}

Tensors GatedExpertsGradOfRows(const ExpertRows& order, const ComputeContext& context) {
  const at::Tensor &gate_up = context.parameters[0], &down = context.parameters[1], &received = context.inputs[1];
  const at::Tensor dout = order.Sort(context.inputs[0]), rows = order.Sort(received);
  const at::Tensor weight = Wide(order.Sort(context.inputs[2])).unsqueeze(-1);
  const GatedRows parts(context, order.Sort(context.inputs[3]));
  const at::Tensor act = parts.activation();

  if (context.learns())
    order.AddOuterProducts(context.gradients[1], dout, Narrow(act * weight, rows), context.writes_gradients);
  const at::Tensor dact = Wide(order.Product(dout, down));
  const at::Tensor dweight = (dact * act).sum(-1), weighted = dact * weight;
  const at::Tensor slope = parts.share * (parts.gate * (1 - parts.share) + 1);  // of silu
  const at::Tensor dpre = Narrow(at::cat({weighted * parts.up * slope, weighted * parts.gate * parts.share}, 1), rows);
  if (context.learns()) order.AddOuterProducts(context.gradients[0], dpre, rows, context.writes_gradients);
  return {order.Unsort(order.Product(dpre, gate_up)), Narrow(order.Unsort(dweight), context.inputs[2])};
}

Tensors RunGatedExperts(const ComputeContext& context) {
  return GatedExpertsOfRows(RowsOf(context, context.inputs[0], context.inputs[2]), context);
}

Tensors RunGatedExpertsGrad(const ComputeContext& context) {
  return GatedExpertsGradOfRows(RowsOf(context, context.inputs[1], context.inputs[4]), context);
}

}  // namespace planwright::executor::ops
