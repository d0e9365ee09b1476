// Rows of experts of recordings whose choices are known.
#include "planner/predict/estimate/expert_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "planner/predict/estimate/instruction_times.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/wire/records/routing_folder.h"
#include "planner/wire/records/routing_format.h"
#include "tests/predict/estimate/made_up_rates.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExpertRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "rowsXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Plan TwoRanks(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"modules.radio_encoder.placement.ranks=2", "modules.language.placement.ranks=2",
                             "modules.language.parallel={ep: 2}", "cluster.gpus_per_node=2"});
    return testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), more);
  }

  // `choice`: the expert of a token by layer, step, sample of the step, position and rank among the top k.
  using Choice = std::function<int64_t(const LayerSummary&, int64_t step, int64_t sample, int64_t position, int64_t j)>;
  void Record(const Plan& plan, int64_t steps, const Choice& choice) {
    ASSERT_TRUE(ClaimRoutingFolder(folder_ + "/choices", "a run", /*goes_on=*/false).ok());
    const Module& module = *plan.FindModule("language");
    for (const LayerSummary& layer : module.layers) {
      if (layer.expert_row < 0) continue;
      std::ofstream file(RoutingPath(folder_ + "/choices", layer.frame), std::ios::binary);
      for (int64_t step = 0; step < steps; ++step) {
        for (int64_t sample = 0; sample < plan.budget.global_samples; ++sample) {
          for (int64_t position = 0; position < plan.budget.sequence_length; ++position) {
            for (int64_t j = 0; j < module.top_k(); ++j) {
              const auto id = static_cast<RoutingId>(choice(layer, step, sample, position, j));
              file.write(reinterpret_cast<const char*>(&id), sizeof id);
            }
          }
        }
      }
    }
    ASSERT_TRUE(FinishRoutingFolder(plan, steps, folder_ + "/choices").ok());
  }
  absl::StatusOr<ExpertRows> Read(const Plan& plan) const { return ReadExpertRows(plan, folder_ + "/choices"); }

  std::string folder_;
};

// Microbatches take turns: in one all rows go to the first rank, in the next half of them. So the fullest rank has 1.5
// times the mean, and over all of them too.
TEST_F(ExpertRowsTest, CountEachMicrobatch) {
  const Plan plan = TwoRanks({"models.hybrid_moe_tiny.moe.imbalance=1"});
  const int64_t experts = plan.FindModule("language")->experts(), block = plan.budget.block_samples,
                top_k = plan.FindModule("language")->top_k();
  Record(plan, 6, [&](const LayerSummary&, int64_t step, int64_t sample, int64_t position, int64_t j) -> int64_t {
    if (step < 2) return experts - 1 - j;  // not counted
    return (sample / block) % 2 == 0 || position % 2 == 0 ? j : experts - 1 - j;
  });
  ASSERT_EQ(plan.budget.microbatches % 2, 0);
  const absl::StatusOr<ExpertRows> rows = Read(plan);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->first_step, 3);
  EXPECT_EQ(rows->last_step, 6);
  ASSERT_FALSE(rows->layers.empty());
  for (const LayerRows& layer : rows->layers) {
    EXPECT_DOUBLE_EQ(layer.fullest, 1.5);
    EXPECT_DOUBLE_EQ(layer.fullest_expert, static_cast<double>(experts) / 2 / static_cast<double>(top_k));
    EXPECT_THAT(layer.ranks, ElementsAre(1.5, 0.5));
  }
  // The time of experts is that of the fullest rank.
  const Rates rates(testing::OnlyKinds({OpKind::kExperts, OpKind::kExpertsGrad}, 1));
  const StepTime even = TimeStep(plan, rates), uneven = TimeStep(plan, rates, &*rows);
  EXPECT_NEAR(uneven.length / even.length, 1.5, 1e-9);
  EXPECT_NEAR(uneven.bubble, 1.0 / 3, 1e-9);
}

// Where a profile says how much longer a product takes of which one expert has most rows, its time is that of the
// experts as they were recorded: here two of four have all rows of a rank, twice the mean.
TEST_F(ExpertRowsTest, UnequalExpertsTakeWhatWasMeasuredOfThem) {
  const Plan plan = TwoRanks();
  const int64_t experts = plan.FindModule("language")->experts(), top_k = plan.FindModule("language")->top_k();
  ASSERT_EQ(experts, 8);
  ASSERT_EQ(top_k, 2);
  Record(plan, 1, [&](const LayerSummary&, int64_t, int64_t, int64_t position, int64_t j) {
    return position % 2 == 0 ? j : experts - 1 - j;
  });
  const absl::StatusOr<ExpertRows> rows = Read(plan);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const LayerRows& layer : rows->layers) {
    EXPECT_DOUBLE_EQ(layer.fullest, 1);
    EXPECT_DOUBLE_EQ(layer.fullest_expert, 2);
  }
  const MeasuredTime factor{1.25, 1.25, 1.25, 1};
  const DeviceProfile profile{.gpu = "none",
                              .skew = {{OpKind::kExperts, 2, factor}, {OpKind::kExpertsGrad, 2, factor}}};
  const Rates rates(testing::OnlyKinds({OpKind::kExperts, OpKind::kExpertsGrad}, 1), profile, 2);
  const Plan even = TwoRanks({"models.hybrid_moe_tiny.moe.imbalance=1"});
  EXPECT_NEAR(TimeStep(plan, rates, &*rows).length / TimeStep(even, rates).length, 1.25, 1e-9);
}

// Turns of fullness cancel out over all microbatches, and cost what they cost in each.
TEST_F(ExpertRowsTest, WhoIsFullestMayChange) {
  const Plan plan = TwoRanks({"models.hybrid_moe_tiny.moe.imbalance=1.9"});
  const int64_t experts = plan.FindModule("language")->experts(), block = plan.budget.block_samples;
  Record(plan, 4, [&](const LayerSummary& layer, int64_t, int64_t sample, int64_t position, int64_t j) -> int64_t {
    const bool first = (sample / block) % 2 == 0, even_layer = layer.expert_row % 2 == 0;
    return (even_layer ? position % 4 > 0 : position % 2 > 0) == first ? j : experts - 1 - j;
  });
  const absl::StatusOr<ExpertRows> rows = Read(plan);
  ASSERT_TRUE(rows.ok()) << rows.status();
  double all = 0;
  for (size_t i = 0; i < rows->layers.size(); ++i) {
    EXPECT_DOUBLE_EQ(rows->layers[i].fullest, i % 2 == 0 ? 1.5 : 1) << i;
    EXPECT_THAT(rows->layers[i].ranks, ElementsAre(1, 1));
    all += rows->layers[i].fullest;
  }
  // Each layer has its own, in place of moe.imbalance.
  const Rates rates(testing::OnlyKinds({OpKind::kExperts, OpKind::kExpertsGrad}, 1));
  const double even = TimeStep(TwoRanks({"models.hybrid_moe_tiny.moe.imbalance=1"}), rates).length;
  EXPECT_NEAR(TimeStep(plan, rates, &*rows).length / even, all / static_cast<double>(rows->layers.size()), 1e-9);
}

// Two nodes of two ranks, of which the first and the last one get rows. On CPUs the two of a node share its network, so
// what a node gets decides how long rows are on their way to other nodes; a GPU has a share of its own. Products are
// those of the fullest rank in both cases, and so is what stays within a node.
TEST_F(ExpertRowsTest, RanksOfANodeShareItsNetworkOnCpus) {
  const auto plan = [](const std::string& cluster, const std::string& parallel) {
    return testing::CompiledFile(
        InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
        {cluster, "modules.radio_encoder.placement.ranks=4", "modules.language.placement.ranks=4",
         "batch.global_samples=8", "budget.train_samples=160", "budget.learning_rate.decay_samples=160",
         "models.hybrid_moe_tiny.moe.imbalance=1", "modules.language.parallel=" + parallel});
  };
  const Plan nodes = plan("cluster={nodes: 2, gpus_per_node: 2, gpu: none}", "{ep: 4, dispatch: all_to_all}");
  const int64_t experts = nodes.FindModule("language")->experts();
  ASSERT_EQ(experts, 8);
  Record(nodes, 1, [&](const LayerSummary&, int64_t, int64_t, int64_t position, int64_t j) {
    return position % 4 > 0 ? j : experts - 1 - j;
  });
  const absl::StatusOr<ExpertRows> rows = Read(nodes);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const LayerRows& layer : rows->layers) {
    EXPECT_DOUBLE_EQ(layer.fullest, 3);
    EXPECT_DOUBLE_EQ(layer.fullest_node, 1.5);
    EXPECT_THAT(layer.ranks, ElementsAre(3, 0, 0, 1));
  }
  // Of a group inside a node there is one node, and it has the mean.
  const Plan one_node = plan("cluster={nodes: 1, gpus_per_node: 4, gpu: none}", "{ep: 4, dispatch: all_to_all}");
  const absl::StatusOr<ExpertRows> inside = Read(one_node);
  ASSERT_TRUE(inside.ok()) << inside.status();
  for (const LayerRows& layer : inside->layers) {
    EXPECT_DOUBLE_EQ(layer.fullest, 3);
    EXPECT_DOUBLE_EQ(layer.fullest_node, 1);
  }

  // How many times as long as with equal rows, of all instructions of the kind: without latencies, with the rates of
  // what was measured.
  const auto longer = [](const Plan& plan, const ExpertRows& rows, OpKind kind) {
    const MeasuredTime second{1, 1, 1, 1};
    const DeviceProfile profile{
        .gpu = plan.cluster.gpu,
        .compute = {{OpKind::kExperts, plan.dtype(), 1e6, 1, "", second}},
        .communication = {{OpKind::kAllToAllV, 1e6, 4, 2, 2, second}, {OpKind::kAllToAllV, 1e6, 4, 4, 1, second}}};
    const Rates rates(testing::OnlyKinds({}, 1), profile, 2);
    LinkedBlocks blocks(plan);
    const InstructionCosts costs(blocks);
    CommunicationUses communications(plan);
    std::set<double> factors;  // in thousandths
    for (const RankClass& ranks : ClassesOf(plan)) {
      const LinkedProgram program(blocks, plan.roles[static_cast<size_t>(ranks.role)]);
      InstructionTimes even(program, costs, rates, communications, ranks),
          uneven(program, costs, rates, communications, ranks, &rows);
      for (size_t i = program.step().first; i < program.step().end; ++i) {
        const LinkedEntry& entry = program.entries()[i];
        if (entry.instruction->source->kind != kind) continue;
        factors.insert(std::round(uneven.of(entry).seconds / even.of(entry).seconds * 1000));
      }
    }
    return factors;
  };
  EXPECT_THAT(longer(nodes, *rows, OpKind::kAllToAllV), ElementsAre(1500));
  EXPECT_THAT(longer(nodes, *rows, OpKind::kExperts), ElementsAre(3000));
  EXPECT_THAT(longer(one_node, *inside, OpKind::kAllToAllV), ElementsAre(3000));
  const Plan gpus = plan("cluster={nodes: 2, gpus_per_node: 2, gpu: h100_sxm}", "{ep: 4, dispatch: all_to_all}");
  EXPECT_THAT(longer(gpus, *Read(gpus), OpKind::kAllToAllV), ElementsAre(3000));
}

// Positions are cut over cp in mirrored halves, and then over tp: each rank's tokens stay in its own ep group.
TEST_F(ExpertRowsTest, TokensGoToTheGroupOfTheirRank) {
  const Plan plan = testing::CompiledFile(
      InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
      {"modules.language.placement={first_rank: 1, ranks: 4}", "cluster.gpus_per_node=5",
       "models.hybrid_moe_tiny.mamba.groups=4", "modules.language.parallel={cp: 2, tp: 2, ep: 2}"});
  const Module& module = *plan.FindModule("language");
  ASSERT_EQ(module.grid.expert_dp, 2) << "tp ranks share an ep group, cp ranks do not";
  const int64_t length = plan.budget.sequence_length;
  Record(plan, 1, [&](const LayerSummary&, int64_t, int64_t, int64_t position, int64_t j) -> int64_t {
    const bool outer = position < length / 4 || position >= 3 * length / 4;  // of cp coordinate 0
    return outer ? j : module.experts() - 1 - j;
  });
  const absl::StatusOr<ExpertRows> rows = Read(plan);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const LayerRows& layer : rows->layers) {
    EXPECT_DOUBLE_EQ(layer.fullest, 2) << "in each group one rank has all";
    EXPECT_THAT(layer.ranks, ElementsAre(1, 1));
  }
}

TEST_F(ExpertRowsTest, WhatDoesNotFitIsRefused) {
  const Plan plan = TwoRanks();
  EXPECT_THAT(std::string(Read(plan).status().message()), HasSubstr("give --routing one that --record-routing has "));
  Record(plan, 1, [](const LayerSummary&, int64_t, int64_t, int64_t, int64_t j) { return j; });
  EXPECT_TRUE(Read(plan).ok());
  EXPECT_THAT(std::string(Read(TwoRanks({"batch.sequence_length=96"})).status().message()),
              HasSubstr("  batch.sequence_length: expected 96, found "));
  std::filesystem::remove(RoutingPath(folder_ + "/choices", Read(plan)->layers.front().frame));
  EXPECT_THAT(std::string(Read(plan).status().message()), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace planwright
