// What two plans cost, side by side.
#include "planner/views/diff/plan_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/predict/estimate/step_time.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/views/diff/toy_recipes.h"

namespace planwright {
namespace {

using testing::CompiledFile;

TEST(PlanFigures, StandSideBySide) {
  const Plan apart = CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml")),
             tiny = CompiledFile(testing::kTiny);
  const StepTime apart_time = TimeStep(apart), tiny_time = TimeStep(tiny);
  const TimedPlan from{apart, apart_time}, to{tiny, tiny_time};
  const nlohmann::ordered_json json = FiguresJson(from, to);
  EXPECT_DOUBLE_EQ(json["from"]["seconds"].get<double>(), apart_time.length);
  EXPECT_DOUBLE_EQ(json["from"]["waiting"].get<double>(), apart_time.bubble);
  EXPECT_GT(json["from"]["memory"].get<int64_t>(), json["to"]["memory"].get<int64_t>());
  EXPECT_TRUE(json["to"]["seconds"].is_null()) << "nothing is known of CPUs";
  const std::string text = FiguresText(from, to);
  EXPECT_THAT(text, ::testing::ContainsRegex("a step +[0-9.]+ m?s +-\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("ranks wait +[0-9.]+ % +0.0 %\n"));
}

}  // namespace
}  // namespace planwright
