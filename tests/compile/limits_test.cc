// The longest recipes that are accepted: each compiles to a plan that can be read again, and that stays a tenth below
// the limits of a plan file. ./dev bench measures how long that takes.
#include "planner/base/text/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/longest_recipes.h"

namespace planwright {
namespace {

using nlohmann::json;
using testing::LongBase;
using testing::LongOverrides;
using testing::LongShape;

int64_t ValuesIn(const json& value) {
  int64_t values = 1;
  for (const json& inner : value) values += inner.is_structured() ? ValuesIn(inner) : 1;
  return values;
}

class LongestRecipe : public ::testing::TestWithParam<LongShape> {};

TEST_P(LongestRecipe, MakesAPlanThatCanBeRead) {
  const Plan plan = testing::CompiledFile(LongBase(), LongOverrides(GetParam(), testing::MostMicrobatches(GetParam())));
  ASSERT_FALSE(plan.roles.empty());
  const std::string text = WritePlan(plan);
  const int64_t values = ValuesIn(json::parse(text));
  const testing::Work work = testing::WorkOf(plan);
  std::cout << plan.budget.microbatches << " microbatches, " << text.size() << " bytes, " << values << " values, "
            << work.instructions << " instructions, " << work.calls << " calls\n";
  EXPECT_LT(text.size(), kLargestPlan * 9 / 10);
  EXPECT_LT(values, static_cast<int64_t>(kMostPlanValues) * 9 / 10);
  const auto again = ReadPlan(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(VerifyPlan(*again).empty());
}

TEST_P(LongestRecipe, WithOneMoreMicrobatchIsRefused) {
  Diagnostics problems;
  const auto recipe =
      ReadRecipe(LongBase(), LongOverrides(GetParam(), testing::MostMicrobatches(GetParam()) + 1), problems);
  ASSERT_TRUE(recipe);
  EXPECT_FALSE(CompileRecipe(*recipe, problems));
  std::string errors;
  for (const Diagnostic& problem : problems.sorted()) {
    if (problem.severity == Severity::kError) errors += problem.message + "\n";
  }
  EXPECT_NE(errors.find("too long to plan"), std::string::npos) << errors;
}

std::string NameOf(const ::testing::TestParamInfo<LongShape>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Limits, LongestRecipe, ::testing::ValuesIn(testing::LongestShapes()), NameOf);

// Lanes that fan out by four give the shortest runs of transfers. With the largest number of layers.
TEST(Limits, TheLongestBridgeTablesCanBeRead) {
  constexpr int64_t kEncoderLanes = kMostTransferRuns / 2, kLanes = 4 * kEncoderLanes;
  const auto overrides = [](int64_t lanes) {
    return std::vector<std::string>{absl::StrCat("cluster.nodes=", lanes + kLanes),
                                    absl::StrCat("modules.radio_encoder.placement.ranks=", lanes),
                                    absl::StrCat("modules.language.placement.first_rank=", lanes),
                                    absl::StrCat("modules.language.placement.ranks=", kLanes),
                                    absl::StrCat("models.radio_vit_tiny.layers=", kMostLayers - 4),
                                    absl::StrCat("batch.global_samples=", kLanes),
                                    "budget.train_samples=1000000",
                                    "gradients.overlap_gather=true",
                                    "gradients.buckets=64"};
  };
  const Plan plan = testing::CompiledFile(LongBase(), overrides(kEncoderLanes));
  ASSERT_FALSE(plan.roles.empty());
  const std::string text = WritePlan(plan);
  std::cout << text.size() << " bytes, " << ValuesIn(json::parse(text)) << " values\n";
  EXPECT_TRUE(ReadPlan(text).ok()) << ReadPlan(text).status();
  // Lanes that do not divide each other.
  Diagnostics problems;
  const auto recipe = ReadRecipe(LongBase(), overrides(kEncoderLanes + 1), problems);
  ASSERT_TRUE(recipe);
  EXPECT_FALSE(CompileRecipe(*recipe, problems));
}

// The layout of 33 nodes trains with 6 microbatches a step. It may have 512.
TEST(Limits, LeaveRoomForLongSteps) {
  const Plan plan =
      testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_54l_33n.yaml"), {"batch.global_samples=65536"});
  EXPECT_EQ(plan.budget.microbatches, 512);
}

}  // namespace
}  // namespace planwright
