// A step that brings more expert rows to a rank than memory is planned for stops by name, and drops nothing
// (docs/memory.md#capacity-of-expert-rows).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/base/files/exit_status.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int kSteps = 2;

TrainingRun WithImbalance(const std::vector<std::string>& language, const std::string& imbalance) {
  std::vector<std::string> overrides = Join(EncoderOn(1, 1), language);
  if (!imbalance.empty()) overrides.push_back("models.hybrid_moe_tiny.moe.imbalance=" + imbalance);
  return Launch({kTinyRecipe, overrides, kSteps, ""});
}

void ExpectStopped(const TrainingRun& run) {
  EXPECT_EQ(run.exit_code, kExitCapacity) << run.output;
  EXPECT_THAT(run.output, ContainsRegex("rank [1-4] got more expert rows than memory is planned for"));
  EXPECT_THAT(run.output, ContainsRegex("layer [13]: [0-9]+ language.expert_rows came to this rank, and memory is "
                                        "planned for [0-9]+: moe.imbalance 1 times the mean of [0-9]+"));
  EXPECT_THAT(run.output, HasSubstr("raise moe.imbalance to "));
  EXPECT_THAT(run.output, HasSubstr("nemotron_moe_vlm_tiny.yaml:"));
}

TEST(Capacity, MoreRowsThanPlannedStopTheRunByName) { ExpectStopped(WithImbalance(LanguageOn(1, 4, 2, 4), "1.0")); }

TEST(Capacity, AlsoWithExpertTp) {
  ExpectStopped(WithImbalance(Join(LanguageOn(1, 4, 1, 2), Parallel("language", {{"expert_tp", 2}})), "1.0"));
}

TEST(Capacity, AlsoWhereTokensAreGathered) {
  ExpectStopped(WithImbalance(Join(LanguageOn(1, 4, 2, 4), {"modules.language.parallel.dispatch=all_gather"}), "1.0"));
}

TEST(Capacity, RoomForAllRowsStopsNothing) {
  EXPECT_EQ(WithImbalance(LanguageOn(1, 4, 2, 4), "4.0").exit_code, 0);
  EXPECT_EQ(WithImbalance(LanguageOn(1, 4, 2, 4), "").exit_code, 0);  // as many as there can be
}

}  // namespace
}  // namespace planwright::testing
