// Two numbers about routing that are only logged. Neither has a backward (the gradient of the auxiliary loss is in
// route_grad).
//
//   sequence_aux_loss     probs [T,E], aux_counts i64 [B,E] of the whole sequence -> aux f64 [1]
//                         the sum over samples of E / (k S^2) sum(p c), over this rank's tokens
//                         (docs/model/mixture_of_experts.md#auxiliary-loss)
//   routing_fingerprint   ids i64 [T,k] -> hash i64 [1], the wrapped sum over all choices of a hash of (layer, sample,
//                         position, expert) (docs/model/mixture_of_experts.md#routing-fingerprint)
//
// The fingerprint is a sum of integers that wraps, and each term names its place in the whole batch. So it depends on
// no layout and no order of additions, and two runs that choose the same experts have the same one.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "executor/base/zigzag.h"
#include "executor/ops/handler.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t Signed(uint64_t value) { return static_cast<int64_t>(value); }

// x ^= x >> shift, with zeros shifted in. A shift of int64 copies the sign instead, so those bits are masked off.
at::Tensor FoldHigh(const at::Tensor& x, int64_t shift) {
  const int64_t low = Signed((uint64_t{1} << (64 - shift)) - 1);
  return x.bitwise_xor(x.bitwise_right_shift(shift).bitwise_and_(low));
}

// The finaliser of splitmix64. Multiplication of int64 wraps, as that of uint64 does.
at::Tensor Mix(at::Tensor x) {
  x = FoldHigh(x, 30) * Signed(0xbf58476d1ce4e5b9);
  x = FoldHigh(x, 27) * Signed(0x94d049bb133111eb);
  return FoldHigh(x, 31);
}

}  // namespace

Tensors RunSequenceAuxLoss(const ComputeContext& context) {
  const at::Tensor &probs = context.inputs[0], &counts = context.inputs[1];
  const int64_t samples = counts.size(0), experts = counts.size(1);
  const double sequence = static_cast<double>(context.instruction.integer("sequence"));
  const double factor =
      static_cast<double>(experts) / (static_cast<double>(context.instruction.integer("top_k")) * sequence * sequence);
  // Token t is position * B + sample: the sum over positions is over dim 0.
  const at::Tensor mass = probs.view({probs.size(0) / samples, samples, experts}).sum(0, false, at::kDouble);
  return {(mass * counts).sum().mul_(factor).reshape({1})};
}

Tensors RunRoutingFingerprint(const ComputeContext& context) {
  const at::Tensor& ids = context.inputs[0];
  // The positions of this rank: of its zigzag part over cp, the consecutive part over tp.
  at::Tensor position = at::arange(context.instruction.integer("sequence"), ids.options());
  if (context.instruction.over_cp()) position = ZigzagPart(position, 0, context.call.cp_rank, context.call.cp);
  const int64_t positions = position.size(0) / context.call.tp;
  const int64_t samples = ids.size(0) / positions;
  position = position.narrow(0, context.call.tp_rank * positions, positions).view({positions, 1, 1});
  const at::Tensor sample =
      at::arange(samples, ids.options()).add_(context.call.lane_samples().first).view({1, samples, 1});
  // Large odd factors spread the four numbers over all 64 bits before they are mixed.
  const at::Tensor token_key = sample * Signed(0x9e3779b97f4a7c15) + position * Signed(0xc2b2ae3d27d4eb4f);
  const int64_t layer = Signed(static_cast<uint64_t>(context.call.layer + 1) * 0x165667b19e3779f9);
  const at::Tensor key = ids.view({positions, samples, ids.size(1)}) * Signed(0xd6e8feb86659fd93) + token_key + layer;
  return {Mix(key).sum().reshape({1})};
}

}  // namespace planwright::executor::ops
