// bf16 on CPU ranks: slow, but the arithmetic of a run on GPUs. Rounding to bf16 decides some expert choices
// differently from the first step on, so curves are not compared number by number with those of other precisions or
// layouts; only the losses of a few steps are.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr int kSteps = 20;
constexpr double kFirstLoss = 5e-4;  // forwards alone: roundings of activations (1e-4 is usual)
constexpr double kLosses = 5e-3;     // and twenty updates with gradients of other roundings (1e-3 is usual)

const TrainingRun& Fp32OnOneRank() {
  static const TrainingRun run = Launch({kTinyRecipe, {"precision.params=fp32"}, kSteps, ""});
  return run;
}

class Bf16 : public ::testing::TestWithParam<Layout> {};

TEST_P(Bf16, LearnsLikeFp32) {
  const TrainingRun& reference = Fp32OnOneRank();
  ASSERT_EQ(reference.exit_code, 0) << reference.output;
  const TrainingRun run =
      Launch({GetParam().recipe, Join({"precision.params=bf16"}, GetParam().overrides), kSteps, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), reference.steps.size());
  double worst = 0;
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const double off = std::abs(run.steps[i].loss / reference.steps[i].loss - 1);
    worst = std::max(worst, off);
    EXPECT_LE(off, i == 0 ? kFirstLoss : kLosses) << "step " << i + 1;
    EXPECT_FALSE(run.steps[i].skipped);
  }
  EXPECT_LT(run.steps.back().loss, 0.8 * run.steps.front().loss);
  std::printf("loss of the first step off by %.1e, worst of %d steps %.1e\n",
              std::abs(run.steps[0].loss / reference.steps[0].loss - 1), kSteps, worst);
}

INSTANTIATE_TEST_SUITE_P(All, Bf16,
                         ::testing::Values(Layout{"one_rank", OneRankOnly()},
                                           Layout{"tp2_tp2_ep2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2))},
                                           Layout{"gathered_ep2",
                                                  Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2),
                                                       {"modules.language.parallel.dispatch=all_gather"})},
                                           Layout{"uneven", Join(EncoderOn(3, 1), LanguageOn(3, 2, 1, 1))},
                                           Layout{"colocated_4", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4))}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright::testing
