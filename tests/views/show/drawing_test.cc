// What the drawings of the terminal and of the page share: timelines, runs of nodes, curves. Grids are written in the
// order of Grid: first rank, tp, cp, dp, pp, expert_tp, ep, expert_dp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/views/show/curves.h"
#include "planner/views/show/node_runs.h"
#include "planner/views/show/timeline.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;

Module ModuleOf(const std::string& name, const Grid& grid) {
  Module module;
  module.name = name;
  module.grid = grid;
  return module;
}

std::vector<int> StartsOf(const TimelineRow& row) {
  std::vector<int> starts;
  for (const TimelineOp& op : row.ops) starts.push_back(op.start);
  return starts;
}

TEST(Timeline, RunsOneForwardOneBackwardOverModulesAndStages) {
  Plan plan;
  plan.modules = {ModuleOf("encoder", {0, 1, 1, 1, 1, 1, 1, 1}), ModuleOf("language", {1, 1, 1, 1, 2, 1, 1, 1})};
  plan.bridges = {{"b", "encoder", "language", "equal"}};
  plan.schedule = {{"encoder", 0, 2, {"F0", "F1", "F2", "B0", "B1", "B2"}},
                   {"language", 0, 1, {"F0", "F1", "B0", "F2", "B1", "B2"}},
                   {"language", 1, 0, {"F0", "B0", "F1", "B1", "F2", "B2"}}};
  const Timeline timeline = TimelineOf(plan);
  EXPECT_THAT(StartsOf(timeline.rows[2]), ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(StartsOf(timeline.rows[1]), ElementsAre(1, 2, 4, 5, 6, 8));
  EXPECT_THAT(StartsOf(timeline.rows[0]), ElementsAre(0, 1, 2, 5, 7, 9));
  EXPECT_EQ(timeline.slots, 10) << "(stages - 1 + microbatches) forwards and as many backwards, less what overlaps";
  EXPECT_EQ(timeline.rows[2].ranks.first, 2);
  EXPECT_EQ(timeline.rows[2].ranks.count, 1);
}

TEST(Timeline, ColocatedModulesTakeTurns) {
  Plan plan;
  plan.modules = {ModuleOf("encoder", {0, 1, 1, 2, 1, 1, 1, 2}), ModuleOf("language", {0, 2, 1, 1, 1, 1, 1, 2})};
  plan.bridges = {{"b", "encoder", "language", "colocated"}};
  plan.schedule = {{"encoder", 0, 0, {"F0", "B0", "F1", "B1"}}, {"language", 0, 0, {"F0", "B0", "F1", "B1"}}};
  const Timeline timeline = TimelineOf(plan);
  EXPECT_THAT(StartsOf(timeline.rows[0]), ElementsAre(0, 3, 4, 7));
  EXPECT_THAT(StartsOf(timeline.rows[1]), ElementsAre(1, 2, 5, 6));
  EXPECT_EQ(timeline.rows[0].busy, timeline.slots) << "no bubbles: the ranks always work";
}

// Each waits for the other: a is to run its backward before its forward.
TEST(Timeline, WhatNeverRunsIsMarked) {
  Plan plan;
  plan.modules = {ModuleOf("a", {0, 1, 1, 1, 1, 1, 1, 1}), ModuleOf("b", {1, 1, 1, 1, 1, 1, 1, 1})};
  plan.bridges = {{"x", "a", "b", "equal"}};
  plan.schedule = {{"a", 0, 0, {"B0", "F0"}}, {"b", 0, 0, {"F0", "B0"}}};
  const Timeline timeline = TimelineOf(plan);
  EXPECT_THAT(StartsOf(timeline.rows[0]), ElementsAre(-1, -1));
  EXPECT_EQ(timeline.slots, 0);
}

// 33 nodes: the encoder on the first, the language model of tp2 and ep16 on the rest.
Plan ThirtyThreeNodes() {
  Plan plan;
  plan.world_size = 264;
  plan.cluster = {33, 8, "none"};
  plan.modules = {ModuleOf("encoder", {0, 1, 1, 8, 1, 1, 1, 8}), ModuleOf("language", {8, 2, 1, 128, 1, 1, 16, 16})};
  return plan;
}

TEST(NodeRuns, SimilarNodesAreOne) {
  const Plan plan = ThirtyThreeNodes();
  const std::vector<NodeRun> runs = NodeRuns(plan, 4);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].first_node, 1);
  EXPECT_EQ(runs[1].nodes, 32);
  EXPECT_THAT(RankBoxLines(plan, runs[0], 3), ElementsAre("rank 3", "encoder", "dp3"));
  EXPECT_THAT(RankBoxLines(plan, runs[1], 5), ElementsAre("rank 13+8n", "language", "tp1 dp2+4n ep5,13"));
  EXPECT_EQ(NodeRuns(plan, 40).size(), 33u);
}

TEST(NodeRuns, StagesAreOtherNodes) {
  Plan plan = ThirtyThreeNodes();
  plan.modules[1].grid = {8, 2, 1, 64, 2, 1, 16, 8};
  const std::vector<NodeRun> runs = NodeRuns(plan, 4);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[2].first_node, 17);
  EXPECT_THAT(RankBoxLines(plan, runs[2], 0), ElementsAre("rank 136+8n", "language", "tp0 dp0+4n pp1 ep0,8"));
}

TEST(RateCurve, EndsWithTheLastFullStep) {
  Budget budget;
  budget.train_samples = 100, budget.global_samples = 16, budget.steps = 7;
  budget.learning_rate = {1e-3, 0, 0, 0, 112, "linear"};
  budget.weight_decay.style = "constant";
  const std::vector<RatePoint> points = RateCurve(budget, 3);
  EXPECT_EQ(points[1].sample, 56);
  EXPECT_DOUBLE_EQ(points[1].learning_rate, 5e-4);
  EXPECT_EQ(points[2].sample, 112);
}

TEST(LineChart, DrawsRisesAndFalls) {
  EXPECT_EQ(LineChart({0, 0, 2, 2, 1}, 3, 6),
            "   2 ┤  ╭─╮\n"
            "   1 ┤  │ ╰\n"
            "   0 ┤──╯\n");
  EXPECT_EQ(LineChart({5, 5}, 2, 6), "     │\n   5 ┤──\n");
}

TEST(LineChart, NamesThePartsThatHaveRoom) {
  EXPECT_EQ(PartsRuler({"warmup", "decay"}, {0.1, 1.0}, 20, 3), "  ├─┼───── decay ─────┤\n");
}

}  // namespace
}  // namespace planwright
