#include "planner/compile/schedule/order/pipeline_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/golden.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

struct Case {
  std::vector<PipelineModule> modules;
  std::vector<PipelineEdge> edges;
  std::map<std::string, int> index;
};

Case CaseOf(const json& edges, const json& modules) {
  Case result;
  for (const auto& [name, targets] : edges.items()) {
    result.index[name] = static_cast<int>(result.modules.size());
    result.modules.push_back({name, modules.is_null() ? 1 : modules.at(name).at("dims").at("pp").get<int>()});
  }
  for (const auto& [name, targets] : edges.items()) {
    for (const std::string target : targets) result.edges.push_back({result.index.at(name), result.index.at(target)});
  }
  return result;
}

TEST(PipelineGraph, StagesAndWarmupsEqualTheReference) {
  int compared = 0;
  for (const json& c : Golden().at("pipeline_cases")) {
    const Case built = CaseOf(c.at("edges"), c.at("modules"));
    Diagnostics diagnostics;
    const auto graph = BuildPipelineGraph(built.modules, built.edges, Line(3), diagnostics);
    ASSERT_TRUE(graph);
    EXPECT_EQ(graph->total_stages, c.at("total_stages").get<int>());
    for (const json& rank : c.at("ranks")) {
      const auto first = rank.at("modules").begin();  // a rank of these cases is in one module
      const std::string name = first.key();
      const int module = built.index.at(name), pp_rank = first.value().at("pp_rank");
      EXPECT_EQ(graph->stage(module, pp_rank), rank.at("current_stage").get<int>()) << c.at("id") << name;
      for (const auto& [microbatches, warmup] : rank.at("warmup").items()) {
        EXPECT_EQ(graph->warmup(module, pp_rank, std::stoi(microbatches)), warmup.get<int>()) << c.at("id") << name;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

TEST(PipelineGraph, CirclesAreRefusedAsInTheReference) {
  for (const auto& [id, c] : Golden().at("pipeline_errors").items()) {
    const Case built = CaseOf(c.at("edges"), nullptr);
    Diagnostics diagnostics;
    EXPECT_FALSE(BuildPipelineGraph(built.modules, built.edges, Line(3), diagnostics)) << id;
    EXPECT_THAT(KindsAndLines(diagnostics), ElementsAre("BridgeCircle:3"));
  }
}

// A shallow encoder beside a deep one is at stage 0 and runs ahead
// (docs/layouts/pipeline.md#stages-of-several-modules).
TEST(PipelineGraph, UnequalEncoders) {
  Diagnostics diagnostics;
  const auto graph =
      BuildPipelineGraph({{"image", 3}, {"audio", 1}, {"llm", 2}}, {{0, 2}, {1, 2}}, Line(3), diagnostics);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->total_stages, 5);
  EXPECT_EQ(graph->warmup(1, 0, 8), 4);
  EXPECT_EQ(graph->warmup(2, 1, 8), 0);
}

// Encoder and language model take turns on the same ranks: no stage waits for another.
TEST(PipelineGraph, ColocatedModulesShareAStage) {
  Diagnostics diagnostics;
  const auto graph = BuildPipelineGraph({{"image", 1}, {"llm", 1}}, {{0, 1, true}}, Line(3), diagnostics);
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->total_stages, 1);
  EXPECT_EQ(graph->warmup(0, 0, 8), 0);
}

TEST(PipelineGraph, ScheduleOfEncoderAndLanguage) {
  Diagnostics diagnostics;
  const auto graph = BuildPipelineGraph({{"image", 1}, {"llm", 1}}, {{0, 1}}, Line(3), diagnostics);
  const auto schedule = ScheduleStages(*graph, 3);
  ASSERT_EQ(schedule.size(), 2u);
  EXPECT_EQ(schedule[0].warmup, 1);
  EXPECT_THAT(schedule[0].order, ElementsAre("F0", "F1", "B0", "F2", "B1", "B2"));
  EXPECT_THAT(schedule[1].order, ElementsAre("F0", "B0", "F1", "B1", "F2", "B2"));
}

TEST(OneForwardOneBackward, ForwardsBeforeBackward) {
  EXPECT_EQ(ForwardsBeforeBackward(OneForwardOneBackward(0, 3)), 1);
  EXPECT_EQ(ForwardsBeforeBackward(OneForwardOneBackward(2, 5)), 3);
  EXPECT_EQ(ForwardsBeforeBackward(OneForwardOneBackward(3, 3)), 3);
  EXPECT_EQ(ForwardsBeforeBackward({"F0", "F1"}), 2) << "a stage that learns nothing";
}

TEST(OneForwardOneBackward, AllWarmup) {
  EXPECT_THAT(OneForwardOneBackward(2, 2), ElementsAre("F0", "F1", "B0", "B1"));
}

}  // namespace
}  // namespace planwright
