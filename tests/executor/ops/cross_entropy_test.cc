// Cross entropy over a cut vocabulary: the test does by hand what the reductions over tp do between the operations.
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/tensor.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/executor/ops/reference.h"
#include "tests/executor/ops/run_op.h"

namespace planwright::executor {
namespace {

struct Loss {
  at::Tensor token_loss, loss, dlogits;
};

Loss RunShards(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& mask, int shards) {
  const int64_t width = logits.size(2) / shards;
  const auto shard = [&](int rank) { return logits.narrow(2, rank * width, width).contiguous(); };
  at::Tensor m, sums;
  for (int rank = 0; rank < shards; ++rank) {
    const at::Tensor part = Op().OnTpRank(rank, shards).Run(ops::RunCrossEntropyMax, {shard(rank)})[0];
    m = m.defined() ? at::maximum(m, part) : part;
  }
  for (int rank = 0; rank < shards; ++rank) {
    const at::Tensor part = Op().OnTpRank(rank, shards).Run(ops::RunCrossEntropySums, {shard(rank), m, labels})[0];
    sums = sums.defined() ? sums + part : part;
  }
  const Tensors loss = Op().Run(ops::RunTokenLoss, {sums, mask});
  Tensors dlogits;
  for (int rank = 0; rank < shards; ++rank) {
    dlogits.push_back(
        Op().OnTpRank(rank, shards).Run(ops::RunCrossEntropyGrad, {shard(rank), m, sums, labels, mask})[0]);
  }
  return {loss[0], loss[1], at::cat(dlogits, 2)};
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

INSTANTIATE_TEST_SUITE_P(Shards, CrossEntropy, testing::Values(1, 2, 4));

TEST(CrossEntropyGolden, LabelOfNoShardPredictsZero) {
  const nlohmann::json golden = nlohmann::json::parse(
      std::ifstream(std::string(PLANWRIGHT_SOURCE_DIR) + "/tests/golden/upstream_public.json"))["derived"]["vocab_ce"];
  std::vector<double> flat;
  for (const auto& row : golden["logits"]) flat.insert(flat.end(), row.begin(), row.end());
  const at::Tensor logits = at::tensor(flat, at::kDouble).view({2, 1, 4});
  const at::Tensor labels = at::tensor(golden["targets"].get<std::vector<int64_t>>(), at::kLong).view({1, 2});
  const at::Tensor mask = at::tensor({1., 1.}, at::kDouble).view({1, 2});
  const Loss out = RunShards(logits, labels, mask, 2);
  EXPECT_LT(Gap(out.token_loss.view({2}), at::tensor(golden["loss"].get<std::vector<double>>(), at::kDouble)), 1e-15);
}

TEST(CrossEntropyGrad, TakesOverTheMemoryOfTheLogits) {
  const at::Tensor logits = Random({3, 2, 8}), labels = at::tensor({7, 0, 4, 1, 3, 2}, at::kLong).view({2, 3}),
                   mask = Random({2, 3}).fill_(1);
  const at::Tensor m = Op().Run(ops::RunCrossEntropyMax, {logits})[0],
                   sums = Op().Run(ops::RunCrossEntropySums, {logits, m, labels})[0];
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
