// Cross entropy over a vocabulary that is cut along tp (docs/model/loss.md#cross-entropy). Each rank computes maximum,
// sum of exponentials and predicted logit of its V columns; between these operations the plan reduces over tp.
//
//   cross_entropy_parts  logits [S,B,V], labels [B,S] -> m_part [S,B], parts [4,S,B]        (then: m, the max over tp)
//                        m_part = the largest of this rank's columns
//                        parts = sum of exp(logit - m_part), m_part, logit of the label, 1; the last two are 0 if
//                        another rank has the label
//   cross_entropy_sums   parts, m -> sums [2,S,B]                                           (then: sum over tp)
//                        sums[0] = sum of exp(logit - m); sums[1] = logit of the label - m, 0 if another rank has it
//   token_loss           sums, loss_mask [B,S] -> token_loss [S,B] = (log sums[0] - sums[1]) mask, loss f64 [1] its sum
//   cross_entropy_grad   logits, m, sums, labels, loss_mask -> dlogits of the summed loss, not divided by N
//
// Where tp does not divide the vocabulary, the last ranks have columns that are no ids. They count as -inf: in no
// maximum, no sum and no gradient.
//
// m, parts, sums and token_loss are fp32 (fp64 for fp64), dlogits has the dtype of the logits. The backward reads the
// reduced m and sums. Parts and gradient go through blocks of positions, so that temporary tensors do not grow to a
// second copy of the logits. The fast forms read the logits once and need no temporary tensors.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <limits>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/vocabulary_part.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kBlockElements = int64_t{1} << 25;  // 128 MB in fp32

// Calls `work(first, length)` over blocks of positions.
template <typename Work>
void ForBlocks(const at::Tensor& logits, Work work) {
  const int64_t positions = logits.size(0);
  const int64_t step = std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, logits.size(1) * logits.size(2)));
  for (int64_t first = 0; first < positions; first += step) work(first, std::min(step, positions - first));
}

struct LocalLabels {
  at::Tensor column;  // [S,B,1] i64: the label's column in this rank's part, clamped to it
  at::Tensor here;    // [S,B,1] bool: whether the label is in this part
};

LocalLabels LabelsOf(const ComputeContext& context, const at::Tensor& labels, int64_t columns) {
  const at::Tensor column = (labels.t() - context.call.tp_rank * columns).unsqueeze(-1);
  return {column.clamp(0, columns - 1), (column >= 0).logical_and_(column < columns)};
}

// A block of logits in which the columns that are no ids are -inf.
at::Tensor OfIds(const at::Tensor& block, int64_t ids) {
  if (ids == block.size(2)) return block;
  const at::Tensor masked = block.clone();
  masked.narrow(2, ids, block.size(2) - ids).fill_(-std::numeric_limits<double>::infinity());
  return masked;
}

}  // namespace

Tensors RunCrossEntropyParts(const ComputeContext& context) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor& logits = context.inputs[0];
  const LocalLabels labels = LabelsOf(context, context.inputs[1], logits.size(2));
  const int64_t ids = IdsOf(context, logits.size(2));
  const at::TensorOptions wide = logits.options().dtype(WideType(logits));
  const at::Tensor m = at::empty({logits.size(0), logits.size(1)}, wide),
                   parts = at::empty({4, logits.size(0), logits.size(1)}, wide);
  ForBlocks(logits, [&](int64_t first, int64_t length) {
    const at::Tensor block = OfIds(logits.narrow(0, first, length), ids), largest = Wide(block.amax({-1}));
    // A row of -inf alone has the sum 0. The difference of two infinities would be NaN.
    const at::Tensor base = largest.masked_fill(largest == -kInfinity, 0);
    m.narrow(0, first, length).copy_(largest);
    parts[0].narrow(0, first, length).copy_((block - base.unsqueeze(-1)).exp_().sum(-1));
    parts[2].narrow(0, first, length).copy_(block.gather(2, labels.column.narrow(0, first, length)).squeeze(-1));
  });
  parts[1].copy_(m);
  parts[3].copy_(labels.here.squeeze(-1));
  parts[2].masked_fill_(parts[3] == 0, 0);
  return {m, parts};
}

Tensors RunCrossEntropySums(const ComputeContext& context) {
  const at::Tensor &parts = context.inputs[0], &m = context.inputs[1];
  return {at::stack({parts[0] * (parts[1] - m).exp_(), (parts[2] - m).masked_fill_(parts[3] == 0, 0)})};
}

Tensors RunTokenLoss(const ComputeContext& context) {
  const at::Tensor& sums = context.inputs[0];
  const at::Tensor token_loss = (sums[0].log() - sums[1]).mul_(context.inputs[1].t());
  return {token_loss, token_loss.sum(at::kDouble).reshape({1})};
}

Tensors RunCrossEntropyGrad(const ComputeContext& context) {
  const at::Tensor &logits = context.inputs[0], &m = context.inputs[1];
  const at::Tensor mask = context.inputs[4].t().to(m.scalar_type()).unsqueeze(-1);
  // dlogits = (softmax - one-hot of the label) mask. softmax = exp(logit - m) / sums[0].
  const at::Tensor share = mask / context.inputs[2][0].unsqueeze(-1);
  const LocalLabels labels = LabelsOf(context, context.inputs[3], logits.size(2));
  const int64_t ids = IdsOf(context, logits.size(2));
  const at::Tensor at_label = mask.masked_fill(labels.here.logical_not(), 0).neg_();
  const at::Tensor dlogits = context.OutputOver(0);
  ForBlocks(logits, [&](int64_t first, int64_t length) {
    const at::Tensor block =
        (OfIds(logits.narrow(0, first, length), ids) - m.narrow(0, first, length).unsqueeze(-1)).exp_();
    block.mul_(share.narrow(0, first, length));
    block.scatter_add_(2, labels.column.narrow(0, first, length), at_label.narrow(0, first, length));
    dlogits.narrow(0, first, length).copy_(block);
  });
  return {dlogits};
}

}  // namespace planwright::executor::ops
