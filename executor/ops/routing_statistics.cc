// Numbers about routing that never reach the residual stream: the auxiliary loss that is logged, and one number for all
// expert choices, a wrapped sum of hashes that no layout and no order changes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t Signed(uint64_t value) { return static_cast<int64_t>(value); }

// x ^= x >> shift, filled with zeros from above; int64 shifts copy the sign.
at::Tensor FoldHigh(const at::Tensor& x, int64_t shift) {
  const int64_t low = Signed((uint64_t{1} << (64 - shift)) - 1);
  return x.bitwise_xor(x.bitwise_right_shift(shift).bitwise_and_(low));
}

// The finaliser of splitmix64. Multiplication wraps.
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
  const at::Tensor mass = probs.view({probs.size(0) / samples, samples, experts}).sum(0, false, at::kDouble);
  return {(mass * counts).sum().mul_(factor).reshape({1})};
}

Tensors RunRoutingFingerprint(const ComputeContext& context) {
  const at::Tensor& ids = context.inputs[0];
  const int64_t local = context.instruction.integer("sequence") / context.call.tp;  // positions of this rank
  const int64_t samples = ids.size(0) / local;
  const at::Tensor position = at::arange(local, ids.options()).add_(context.call.tp_rank * local).view({local, 1, 1});
  const at::Tensor sample =
      at::arange(samples, ids.options()).add_(context.call.lane_samples().first).view({1, samples, 1});
  // Odd factors spread the four numbers over 64 bits before they are mixed.
  const at::Tensor place = sample * Signed(0x9e3779b97f4a7c15) + position * Signed(0xc2b2ae3d27d4eb4f);
  const int64_t layer = Signed(static_cast<uint64_t>(context.call.layer + 1) * 0x165667b19e3779f9);
  const at::Tensor key = ids.view({local, samples, ids.size(1)}) * Signed(0xd6e8feb86659fd93) + place + layer;
  return {Mix(key).sum().reshape({1})};
}

}  // namespace planwright::executor::ops
