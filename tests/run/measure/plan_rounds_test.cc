// Which communications a plan has timed: the kinds, groups and sizes that its steps contain, and around them.
#include "planner/run/measure/plan_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

TEST(RoundsFor, CoverTheUsualKindsOverTheGroupsThatAreThere) {
  const Plan plan = testing::CompiledFile(
      kTiny, {"cluster.nodes=2", "cluster.gpus_per_node=2", "batch.global_samples=8", "budget.train_samples=160",
              "budget.learning_rate.decay_samples=160", "modules.language.placement.ranks=4",
              "modules.language.parallel.ep=2", "modules.radio_encoder.placement.ranks=4"});
  const CommunicationRounds rounds = RoundsFor(plan);
  EXPECT_EQ(rounds.ranks_per_node, 2);
  std::map<std::pair<int, int>, std::set<OpKind>> by_shape;
  std::map<OpKind, std::set<int64_t>> sizes;
  for (const CommunicationRound& round : rounds.list) {
    by_shape[{round.per_node, round.nodes}].insert(round.kind);
    sizes[round.kind].insert(round.bytes);
    EXPECT_GE(round.batches, 5);
  }
  std::set<std::pair<int, int>> shapes;
  for (const auto& [shape, kinds] : by_shape) {
    shapes.insert(shape);
    for (OpKind kind : {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kAllToAllV})
      EXPECT_TRUE(kinds.contains(kind)) << OpName(kind);
    EXPECT_EQ(kinds.contains(OpKind::kExchange), shape.first * shape.second == 2);
  }
  EXPECT_EQ(shapes, (std::set<std::pair<int, int>>{{2, 1}, {1, 2}, {2, 2}}));
  EXPECT_GE(sizes[OpKind::kAllReduce].size(), 3U);
  // Rows that nobody counts on CPUs have sizes that are twice as close.
  int64_t before = 0;
  for (const CommunicationRound& round : rounds.list) {
    if (round.kind != OpKind::kAllToAllV || round.per_node != 2 || round.nodes != 2) continue;
    if (before > 0) EXPECT_LE(round.bytes, 2 * before + 16) << before;
    before = round.bytes;
  }
  // As one file for all ranks to read.
  const absl::StatusOr<CommunicationRounds> read = ReadRounds(RoundsJson(rounds));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->list, rounds.list);
}

TEST(RoundsFor, AreNoneForOneRank) { EXPECT_TRUE(RoundsFor(testing::CompiledFile(kTiny)).list.empty()); }

}  // namespace
}  // namespace planwright
