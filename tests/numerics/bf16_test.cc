// bf16 on CPU ranks: slow, but the arithmetic of a run on GPUs. Rounding to bf16 decides some expert choices
// differently from the first step on, so curves are not compared number by number with those of other precisions or
// layouts; only the losses of a few steps are.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

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

// Both kinds of dispatch, one with the choices of the other: what a token gets from its experts is added in fp32 and
// rounded once in both, so the runs differ by the order of additions alone. Terms that were rounded before they are
// added over ranks would be off as far as another layout is.
TEST(Bf16Dispatch, GatheredTokensTrainAsThoseThatAreSent) {
  std::string folder = ::testing::TempDir() + "bf16_dispatchXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto run = [&](const std::vector<std::string>& layout, const char* option) {
    return Launch(
        {.recipe = kTinyRecipe,
         // More than two terms: two have no order.
         .overrides = Join({"precision.params=bf16", "models.hybrid_moe_tiny.moe.top_k=4"}, EncoderOn(1, 1), layout),
         .steps = kSteps,
         .options = {option, folder}});
  };
  const std::vector<std::string> ep4 = LanguageOn(1, 4, 1, 4);
  const TrainingRun sent = run(ep4, "--record-routing");
  ASSERT_EQ(sent.exit_code, 0) << sent.output;
  const TrainingRun gathered = run(Join(ep4, {"modules.language.parallel.dispatch=all_gather"}), "--replay-routing");
  ASSERT_EQ(gathered.exit_code, 0) << gathered.output;
  const TrainingRun other = run(LanguageOn(1, 2, 2, 1), "--replay-routing");
  ASSERT_EQ(other.exit_code, 0) << other.output;
  std::filesystem::remove_all(folder);
  const auto worst = [&](const TrainingRun& a) {
    double off = 0;
    for (size_t i = 0; i < sent.steps.size(); ++i)
      off = std::max(off, std::abs(a.steps.at(i).loss / sent.steps[i].loss - 1));
    return off;
  };
  std::printf("worst loss of %d steps: gathered off by %.1e, another layout by %.1e\n", kSteps, worst(gathered),
              worst(other));
  EXPECT_LE(worst(gathered), 0.2 * worst(other));
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
