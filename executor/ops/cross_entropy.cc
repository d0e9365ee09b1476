// Cross entropy over a vocabulary that is cut along tp (facts 3.8): each rank makes the maximum, the sum of
// exponentials and the predicted logit of its part, between which the plan reduces. Works through blocks of positions,
// so that the workspace is bounded and not a second copy of the logits.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "executor/ops/handler.h"
#include "executor/ops/numerics.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kBlockElements = int64_t{1} << 25;

// Calls `work(first, length)` over blocks of positions.
template <typename Work>
void ForBlocks(const at::Tensor& logits, Work work) {
  const int64_t positions = logits.size(0);
  const int64_t step = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, logits.size(1) * logits.size(2)));
  for (int64_t first = 0; first < positions; first += step) work(first, std::min(step, positions - first));
}

struct LocalLabels {
  at::Tensor column;  // [S,B,1] inside this rank's part, clamped
  at::Tensor here;    // [S,B,1] the label is in this part
};

LocalLabels LabelsOf(const ComputeContext& context, const at::Tensor& labels, int64_t columns) {
  const at::Tensor column = (labels.t() - context.call.tp_rank * columns).unsqueeze(-1);
  return {column.clamp(0, columns - 1), (column >= 0).logical_and_(column < columns)};
}

}  // namespace

Tensors RunCrossEntropyMax(const ComputeContext& context) { return {Wide(context.inputs[0].amax({-1}))}; }

Tensors RunCrossEntropySums(const ComputeContext& context) {
  const at::Tensor &logits = context.inputs[0], &m = context.inputs[1];
  const LocalLabels labels = LabelsOf(context, context.inputs[2], logits.size(2));
  const at::Tensor sums = at::empty({2, logits.size(0), logits.size(1)}, m.options());
  ForBlocks(logits, [&](int64_t first, int64_t length) {
    const at::Tensor shifted = logits.narrow(0, first, length) - m.narrow(0, first, length).unsqueeze(-1);
    const at::Tensor predicted = shifted.gather(2, labels.column.narrow(0, first, length));
    const at::Tensor here = labels.here.narrow(0, first, length);
    sums[1].narrow(0, first, length).copy_(predicted.masked_fill(here.logical_not(), 0).squeeze(-1));
    sums[0].narrow(0, first, length).copy_(shifted.exp_().sum(-1));
  });
  return {sums};
}

Tensors RunTokenLoss(const ComputeContext& context) {
  const at::Tensor& sums = context.inputs[0];
  const at::Tensor token_loss = (sums[0].log() - sums[1]).mul_(context.inputs[1].t());
  return {token_loss, token_loss.sum(at::kDouble).reshape({1})};
}

Tensors RunCrossEntropyGrad(const ComputeContext& context) {
  const at::Tensor &logits = context.inputs[0], &m = context.inputs[1];
  const at::Tensor mask = context.inputs[4].t().to(m.scalar_type()).unsqueeze(-1);
  const at::Tensor share = mask / context.inputs[2][0].unsqueeze(-1);  // of exp(logit - m)
  const LocalLabels labels = LabelsOf(context, context.inputs[3], logits.size(2));
  const at::Tensor at_label = mask.masked_fill(labels.here.logical_not(), 0).neg_();
  const at::Tensor dlogits = at::empty_like(logits);
  ForBlocks(logits, [&](int64_t first, int64_t length) {
    const at::Tensor block = (logits.narrow(0, first, length) - m.narrow(0, first, length).unsqueeze(-1)).exp_();
    block.mul_(share.narrow(0, first, length));
    block.scatter_add_(2, labels.column.narrow(0, first, length), at_label.narrow(0, first, length));
    dlogits.narrow(0, first, length).copy_(block);
  });
  return {dlogits};
}

}  // namespace planwright::executor::ops
