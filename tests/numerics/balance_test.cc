// data.balance puts the samples of a step in another order (docs/training/data.md#balance). The order depends on no
// layout, so numbers do not either, and the step has the same samples, so the curve stays. Real processes over Gloo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

using ::testing::IsEmpty;

constexpr double kFp64 = 1e-9;
constexpr int kSteps = 3;  // the third step is the first one after an update of all weights

TrainingRun Train(const std::string& balance, const std::vector<std::string>& layout) {
  return Launch({kTinyRecipe, Join({"precision.params=fp64", "data.balance=" + balance}, layout), kSteps, ""});
}

const TrainingRun& OneRank(const std::string& balance) {
  static std::map<std::string, TrainingRun> runs;
  const auto [at, fresh] = runs.try_emplace(balance);
  if (fresh) at->second = Train(balance, OneRankOnly());
  return at->second;
}

TEST(Balance, EveryLayoutTrainsTheCurveOfOneRank) {
  const TrainingRun& one = OneRank("images");
  ASSERT_EQ(one.exit_code, 0) << one.output;
  const std::vector<std::string> names = {"dp2_dp2", "ep4", "pp2", "cp2", "encoder_cp2_dp2", "uneven", "colocated_4"};
  size_t found = 0;
  for (const Layout& layout : AllLayouts()) {
    if (std::find(names.begin(), names.end(), layout.name) == names.end()) continue;
    ++found;
    const TrainingRun run = Train("images", layout.overrides);
    ASSERT_EQ(run.exit_code, 0) << layout.name << "\n" << run.output;
    const Comparison comparison = Compare(run, one, kFp64);
    EXPECT_THAT(comparison.differences, IsEmpty()) << layout.name;
    EXPECT_FALSE(comparison.parted_at.has_value()) << layout.name;
    std::printf("%-16s loss %.1e  gradients %.1e %.1e\n", layout.name.c_str(), comparison.worst_loss,
                comparison.worst_gradient_first, comparison.worst_gradient_last);
  }
  EXPECT_EQ(found, names.size());
}

TEST(Balance, LeavesTheCurveAsItIs) {
  const TrainingRun &balanced = OneRank("images"), &plain = OneRank("none");
  ASSERT_EQ(plain.exit_code, 0) << plain.output;
  ASSERT_EQ(balanced.steps.size(), plain.steps.size());
  for (size_t i = 0; i < plain.steps.size(); ++i) {
    const StepMetrics &a = balanced.steps[i], &b = plain.steps[i];
    EXPECT_NEAR(a.loss, b.loss, kFp64 * b.loss);
    EXPECT_NEAR(a.grad_norm, b.grad_norm, kFp64 * b.grad_norm);
    EXPECT_NE(a.routing, b.routing) << "the samples stand where they stood";
  }
  ASSERT_EQ(balanced.gradients_last.size(), plain.gradients_last.size());
  for (const auto& [name, expected] : plain.gradients_last)
    EXPECT_LT(Distance(balanced.gradients_last.at(name), expected), kFp64) << name;
}

}  // namespace
}  // namespace planwright::testing
