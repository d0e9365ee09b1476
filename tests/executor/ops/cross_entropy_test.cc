// Cross entropy over a cut vocabulary: the test does by hand what the reductions over tp do between the operations.
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/executor/ops/reference.h"
#include "tests/executor/ops/run_op.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

struct Loss {
  at::Tensor token_loss, loss, dlogits;
};

// Where shards do not divide the vocabulary, columns behind it have logits that would win and dominate every sum.
Loss RunShards(const at::Tensor& whole, const at::Tensor& labels, const at::Tensor& mask, int shards) {
  const int64_t ids = whole.size(2), width = (ids + shards - 1) / shards;
  at::Tensor logits = whole;
  Attributes attributes;
  if (const int64_t padding = width * shards - ids; padding > 0) {
    logits = at::cat({whole, at::full({whole.size(0), whole.size(1), padding}, 1e4, whole.options())}, 2);
    attributes = {{"vocabulary", ids}};
  }
  const auto shard = [&](int rank) { return logits.narrow(2, rank * width, width).contiguous(); };
  at::Tensor m, sums;
  Tensors parts;
  for (int rank = 0; rank < shards; ++rank) {
    const Tensors made = Op(attributes).OnTpRank(rank, shards).Run(ops::RunCrossEntropyParts, {shard(rank), labels});
    m = m.defined() ? at::maximum(m, made[0]) : made[0];
    parts.push_back(made[1]);
  }
  for (const at::Tensor& of_rank : parts) {
    const at::Tensor part = Op().Run(ops::RunCrossEntropySums, {of_rank, m})[0];
    sums = sums.defined() ? sums + part : part;
  }
  const Tensors loss = Op().Run(ops::RunTokenLoss, {sums, mask});
  Tensors dlogits;
  for (int rank = 0; rank < shards; ++rank) {
    dlogits.push_back(
        Op(attributes).OnTpRank(rank, shards).Run(ops::RunCrossEntropyGrad, {shard(rank), m, sums, labels, mask})[0]);
  }
  const at::Tensor all = at::cat(dlogits, 2), behind = all.narrow(2, ids, all.size(2) - ids);
  // Without a loss a row has NaN everywhere, also there.
  const at::Tensor known = loss[0].isfinite().unsqueeze(-1).expand_as(behind);
  EXPECT_EQ(behind.masked_select(known).count_nonzero().item<int64_t>(), 0);
  return {loss[0], loss[1], all.narrow(2, 0, ids)};
}

class CrossEntropy : public testing::TestWithParam<int> {};

TEST_P(CrossEntropy, ShardsMeetTheWholeVocabulary) {
  const at::Tensor logits = Leaf(Random({3, 2, 8}) * 30 + 500);  // exp would overflow without the maximum
  const at::Tensor labels = at::tensor({7, 0, 4, -100, 3, 2}, at::kLong).view({2, 3});
  const at::Tensor mask = at::tensor({1., 1., 0., 0., 1., 0.5}, at::kDouble).view({2, 3});
  const at::Tensor expected = reference::CrossEntropy(logits, labels, mask);
  expected.backward();
  const Loss out = RunShards(logits.detach(), labels, mask, GetParam());
  EXPECT_EQ(out.loss.scalar_type(), at::kDouble);
  EXPECT_SAME(out.loss, expected.view({1}));
  EXPECT_SAME(out.dlogits, logits.grad());
  EXPECT_EQ(out.token_loss[0][1].item<double>(), 0);  // label -100, masked
}

INSTANTIATE_TEST_SUITE_P(Shards, CrossEntropy, testing::Values(1, 2, 3, 4, 5),
                         [](const auto& info) { return "of_" + std::to_string(info.param); });

TEST(CrossEntropyGolden, LabelOfNoShardPredictsZero) {
  const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(InSource("tests/golden/upstream_public.json")))["derived"]["vocab_ce"];
  std::vector<double> flat;
  for (const auto& row : golden["logits"]) flat.insert(flat.end(), row.begin(), row.end());
  const at::Tensor logits = at::tensor(flat, at::kDouble).view({2, 1, 4});
  const at::Tensor labels = at::tensor(golden["targets"].get<std::vector<int64_t>>(), at::kLong).view({1, 2});
  const at::Tensor mask = at::tensor({1., 1.}, at::kDouble).view({1, 2});
  const Loss out = RunShards(logits, labels, mask, 2);
  EXPECT_LT(Gap(out.token_loss.view({2}), at::tensor(golden["loss"].get<std::vector<double>>(), at::kDouble)), 1e-15);
}

// A part of the vocabulary may have no finite logit: it adds nothing. A row without a finite logit, and one with NaN or
// with +inf, has no loss, however the vocabulary is cut.
TEST_P(CrossEntropy, InfiniteLogits) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const at::Tensor logits = Random({5, 1, 8}) * 30 + 500, labels = at::tensor({6, 1, 2, 3, 4}, at::kLong).view({1, 5}),
                   mask = at::ones({1, 5}, at::kDouble);
  logits[0][0].narrow(0, 0, 4).fill_(-kInfinity);  // of 2 parts the first, of 4 parts two
  logits[1][0].narrow(0, 2, 6).fill_(-kInfinity);
  logits[2][0].fill_(-kInfinity);
  logits[3][0][5].fill_(std::nan(""));
  logits[4][0][1].fill_(kInfinity);
  const at::Tensor finite = Leaf(logits.narrow(0, 0, 2).clone());
  const at::Tensor expected = reference::CrossEntropy(finite, labels.narrow(1, 0, 2), mask.narrow(1, 0, 2));
  expected.backward();
  const Loss out = RunShards(logits, labels, mask, GetParam());
  EXPECT_SAME(out.token_loss.narrow(0, 0, 2).sum(), expected);
  EXPECT_SAME(out.dlogits.narrow(0, 0, 2), finite.grad());
  for (int row = 2; row < 5; ++row) EXPECT_TRUE(std::isnan(out.token_loss[row][0].item<double>())) << row;
}

TEST(CrossEntropyGrad, TakesOverTheMemoryOfTheLogits) {
  const at::Tensor logits = Random({3, 2, 8}), labels = at::tensor({7, 0, 4, 1, 3, 2}, at::kLong).view({2, 3}),
                   mask = Random({2, 3}).fill_(1);
  const Tensors parts = Op().Run(ops::RunCrossEntropyParts, {logits, labels});
  const at::Tensor m = parts[0], sums = Op().Run(ops::RunCrossEntropySums, {parts[1], m})[0];
  const at::Tensor expected = Op().Run(ops::RunCrossEntropyGrad, {logits, m, sums, labels, mask})[0];
  EXPECT_FALSE(expected.is_alias_of(logits));
  const at::Tensor dlogits = Op().Overwriting().Run(ops::RunCrossEntropyGrad, {logits, m, sums, labels, mask})[0];
  EXPECT_TRUE(dlogits.is_same(logits));
  EXPECT_TRUE(dlogits.equal(expected));
  // Another tensor that shares the memory would change with it.
  const at::Tensor view = logits.view({6, 8});
  EXPECT_THROW(Op().Overwriting().Run(ops::RunCrossEntropyGrad, {logits, m, sums, labels, mask}), c10::Error);
}

TEST(CrossEntropyBf16, StatisticsAreWide) {
  const at::Tensor logits = Random({3, 2, 8}).to(at::kBFloat16),
                   labels = at::tensor({7, 0, 4, 1, 3, 2}, at::kLong).view({2, 3});
  const at::Tensor mask = Random({2, 3}).fill_(1).to(at::kFloat);
  const Loss out = RunShards(logits, labels, mask, 2),
             exact = RunShards(logits.to(at::kDouble), labels, mask.to(at::kDouble), 1);
  EXPECT_EQ(out.token_loss.scalar_type(), at::kFloat);
  EXPECT_EQ(out.dlogits.scalar_type(), at::kBFloat16);
  EXPECT_LT(Gap(out.token_loss, exact.token_loss), 1e-6);
  EXPECT_LT(Gap(out.dlogits, exact.dlogits), 0.004);  // one rounding to bf16
}

}  // namespace
}  // namespace planwright::executor
