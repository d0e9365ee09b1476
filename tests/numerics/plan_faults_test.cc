// Losses, norms and gradients notice faults that only one feature could have: a lowering of pp, cp, ... that is wrong
// would not pass layouts_test.cc.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

#include "absl/strings/str_join.h"
#include "tests/numerics/faults/plan_fault.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr double kFp64 = 1e-9;
constexpr int kSteps = 2;

const TrainingRun& Healthy(const Layout& layout) {
  static std::map<std::string, TrainingRun> runs;
  auto [it, fresh] = runs.try_emplace(absl::StrJoin(layout.training, " ") + layout.recipe);
  if (fresh) {
    it->second = Launch({layout.recipe, Join({"precision.params=fp64"}, layout.one_rank, layout.training), kSteps, ""});
  }
  return it->second;
}

class Fault : public ::testing::TestWithParam<PlanFault> {};

TEST_P(Fault, IsNoticed) {
  const Layout& layout = GetParam().layout;
  ASSERT_EQ(Healthy(layout).exit_code, 0) << Healthy(layout).output;
  setenv("PLANWRIGHT_FAULT", ("plan:" + GetParam().name).c_str(), 1);
  const TrainingRun run = Launch(
      {layout.recipe, Join({"precision.params=fp64"}, layout.training, layout.overrides), kSteps, "faulty_executor"});
  ASSERT_EQ(run.exit_code, 0) << run.output;  // a fault that stops the run shows nothing about curves
  const Comparison comparison = Compare(run, Healthy(layout), kFp64);
  if (comparison.parted_at) return;  // other experts chosen: in fp64 no layout does that (layouts_test.cc)
  EXPECT_GT(std::max({comparison.worst_loss, comparison.worst_norm, comparison.worst_bridge,
                      comparison.worst_gradient_first, comparison.worst_gradient_last}),
            1000 * kFp64);
}

INSTANTIATE_TEST_SUITE_P(All, Fault, ::testing::ValuesIn(AllPlanFaults()),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Fault);

}  // namespace
}  // namespace planwright::testing
