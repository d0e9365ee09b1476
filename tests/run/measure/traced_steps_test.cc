// Which steps a measurement traces.
#include "planner/run/measure/traced_steps.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/predict/estimate/step_time.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

Plan OfSteps(int steps, const std::string& recipe = "recipes/nemotron_moe_lm_20l_1g.yaml") {
  const std::string all = absl::StrCat(8 * steps);
  return testing::CompiledFile(InSource(recipe),
                               {"batch.global_samples=8", "budget.train_samples=" + all,
                                "budget.learning_rate.decay_samples=" + all, "budget.learning_rate.warmup_samples=0"});
}

TEST(TracedSteps, OfGpusComeWhenTheyAreWarm) {
  const Plan plan = OfSteps(50);
  const double length = TimeStep(plan).length;
  ASSERT_GT(length, 1);
  ASSERT_LT(length, 4);
  const StepRange traced = TracedSteps(plan, true);
  const auto warm = static_cast<double>(traced.first - 2);  // without the step that loads
  EXPECT_GE(warm * length, 4);
  EXPECT_LT((warm - 1) * length, 4);
  EXPECT_GE(traced.count(), 4);
  EXPECT_EQ(TracedSteps(plan, false).first, 3) << "a CPU has no such power";
  EXPECT_EQ(TracedSteps(plan, false).count(), traced.count());
}

TEST(TracedSteps, AreThoseThatThePlanHas) {
  EXPECT_EQ(TracedSteps(OfSteps(1), true), (StepRange{1, 1}));
  EXPECT_EQ(TracedSteps(OfSteps(2), true), (StepRange{2, 2}));
  EXPECT_EQ(TracedSteps(OfSteps(3), true), (StepRange{3, 3}));
  EXPECT_EQ(TracedSteps(OfSteps(5), true), (StepRange{3, 5}));
  const int64_t warm = TracedSteps(OfSteps(50), true).first;
  ASSERT_GT(warm, 4);
  EXPECT_EQ(TracedSteps(OfSteps(7), true), (StepRange{4, 7})) << "four repetitions come before warmth";
  EXPECT_EQ(TracedSteps(OfSteps(10), true), (StepRange{warm, 10})) << "and warmth before more of them";
}

}  // namespace
}  // namespace planwright
