// The routers: sigmoid scores with a bias that takes part in the choice only (docs/model/mixture_of_experts.md#router),
// or a softmax (docs/model/decoder.md#softmax-router); top-k with ties to the lower expert, and the statistics of the
// auxiliary loss (docs/model/mixture_of_experts.md#auxiliary-loss). T = s B tokens of this rank, E experts, k of them
// for each token. Token t is position * B + sample.
//
//   route        n [s,B,H] -> weights [T,k], ids i64 [T,k], counts i64 [E], probs [T,E], aux_counts i64 [B,E],
//                logits [T,E]; parameters gate [E,H], gate_bias [E]
//   route_grad   dweights, n, weights, ids, logits, aux_counts -> dn [s,B,H]; adds to the gradient of gate. In a frozen
//                model there is no gradient of gate and no auxiliary loss, and so no aux_counts.
//   route_softmax, route_softmax_grad: the same without gate_bias and a scale, and the backward without weights
//
// Everything is computed in fp32 (fp64 for fp64), the product with the gate included: in bf16 close scores would tie,
// and the choice would depend on rounding. dn has the dtype of n. The backward reads n, ids and logits, and the counts
// of the whole sequence for the auxiliary loss. The choice itself has no gradient, so gate_bias has none.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "executor/ops/handler.h"
#include "executor/ops/routing.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

constexpr double kTiny = 1e-20;  // keeps the divisor of the weights from zero

// The experts of the k best scores, [T,k], best first. The sort is stable, so equal scores stay in the order of
// experts. LibTorch's topk does not promise an order of ties.
at::Tensor TopExperts(const at::Tensor& scores, int64_t top_k) {
  return std::get<1>(scores.sort(std::optional<bool>(true), -1, true)).narrow(1, 0, top_k).contiguous();
}

// How often each value of [0, size) occurs, i64 [size]. Sums of integers do not depend on the order of additions, so a
// scatter is deterministic here.
at::Tensor CountOf(const at::Tensor& values, int64_t size) {
  const at::Tensor flat = values.reshape({-1});
  return at::zeros({size}, flat.options()).scatter_add_(0, flat, at::ones_like(flat));
}

// The gradient of the auxiliary loss for the scores [T,E]. It is linear in probs = s / (sum of s over all experts), and
// its counts have no gradient.
at::Tensor AuxLossGrad(const Instruction& instruction, const at::Tensor& counts, const at::Tensor& scores) {
  const int64_t tokens = scores.size(0), experts = scores.size(1), samples = counts.size(0);
  const auto k = static_cast<double>(instruction.integer("top_k")),
             sequence = static_cast<double>(instruction.integer("sequence"));
  const double factor = instruction.real("aux_scale") * static_cast<double>(experts) / (k * sequence * sequence);
  const at::Tensor dprobs = counts.to(scores.scalar_type()).mul_(factor).unsqueeze(0);
  const at::Tensor by_sample = scores.view({tokens / samples, samples, experts}), sum = by_sample.sum({-1}, true);
  return ((dprobs - (dprobs * by_sample).sum({-1}, true) / sum) / sum).view({tokens, experts});
}

// The gradient of the chosen scores s [T,k], from that of s / (sum of s over the choices).
at::Tensor DividedGrad(const at::Tensor& dquotients, const at::Tensor& chosen) {
  const at::Tensor sum = chosen.sum({-1}, true) + kTiny;
  // s / (s + kTiny) is 1. The difference below would be a rounding, which Adam makes a step as large as any.
  if (chosen.size(1) == 1) return dquotients * (kTiny / sum) / sum;
  return (dquotients - (dquotients * chosen).sum({-1}, true) / sum) / sum;
}

enum class Scores { kSigmoid, kSoftmax };  // of the experts, from logits [T,E]

at::Tensor ScoresOf(Scores scores, const at::Tensor& logits) {
  return scores == Scores::kSigmoid ? logits.sigmoid() : logits.softmax(-1);
}

// The gradient of logits from that of their scores [T,E].
at::Tensor LogitsGrad(Scores kind, const at::Tensor& dscores, const at::Tensor& scores) {
  if (kind == Scores::kSigmoid) return dscores * scores * (1 - scores);
  return (dscores - (dscores * scores).sum({-1}, true)) * scores;
}

// The factor on weights; 1 for kinds that have none.
double ScaleOf(const Instruction& instruction) {
  return instruction.attributes.contains("scale") ? instruction.real("scale") : 1;
}

Tensors Route(const ComputeContext& context, Scores kind) {
  const at::Tensor& n = context.inputs[0];
  const int64_t samples = n.size(1), experts = context.parameters[0].size(0),
                top_k = context.instruction.integer("top_k");
  const at::Tensor logits = at::mm(Wide(AsRows(n)), Wide(context.parameters[0]).t());
  const at::Tensor scores = ScoresOf(kind, logits);
  // A second input is not in the plan: the choices of another run, which a replay makes again.
  const bool replayed = context.inputs.size() > 1, biased = context.parameters.size() > 1;
  const at::Tensor ids =
      replayed ? context.inputs[1] : TopExperts(biased ? scores + context.parameters[1] : scores, top_k);
  at::Tensor weights = scores.gather(1, ids);
  if (NormalizesWeights(context.instruction)) weights = weights / (weights.sum({-1}, true) + kTiny);
  weights.mul_(ScaleOf(context.instruction));

  // For the auxiliary loss: the choice without the bias, counted for each sample.
  const at::Tensor probs = scores / scores.sum({-1}, true);
  const at::Tensor unbiased = TopExperts(scores, top_k);
  const at::Tensor sample = at::arange(ids.size(0), ids.options()).remainder_(samples).unsqueeze(-1);
  const at::Tensor aux_counts = CountOf(sample * experts + unbiased, samples * experts).view({samples, experts});
  return {weights, ids, CountOf(ids, experts), probs, aux_counts, logits};
}

Tensors RouteGrad(const ComputeContext& context, Scores kind) {
  const Instruction& instruction = context.instruction;
  const size_t at = kind == Scores::kSigmoid ? 3 : 2;  // weights, which are not needed here, stand before the ids
  const at::Tensor &dweights = context.inputs[0], &ids = context.inputs[at];
  const at::Tensor n = AsRows(context.inputs[1]), scores = ScoresOf(kind, Wide(context.inputs[at + 1]));

  at::Tensor dchosen = Wide(dweights) * ScaleOf(instruction);
  if (NormalizesWeights(instruction)) dchosen = DividedGrad(dchosen, scores.gather(1, ids));
  at::Tensor dscores = instruction.attributes.contains("aux_scale")
                           ? AuxLossGrad(instruction, context.inputs[at + 2], scores)
                           : at::zeros_like(scores);
  dscores.scatter_add_(1, ids, dchosen);  // deterministic: the experts of a token are distinct

  const at::Tensor dlogits = LogitsGrad(kind, dscores, scores);
  if (context.learns()) AddProduct(context.gradients[0], dlogits.t(), Wide(n));
  const at::Tensor dn = at::mm(dlogits, Wide(context.parameters[0]));
  return {Narrow(dn, n).view(context.inputs[1].sizes())};
}

}  // namespace

Tensors RunRoute(const ComputeContext& context) { return Route(context, Scores::kSigmoid); }
Tensors RunRouteGrad(const ComputeContext& context) { return RouteGrad(context, Scores::kSigmoid); }
Tensors RunRouteSoftmax(const ComputeContext& context) { return Route(context, Scores::kSoftmax); }
Tensors RunRouteSoftmaxGrad(const ComputeContext& context) { return RouteGrad(context, Scores::kSoftmax); }

}  // namespace planwright::executor::ops
