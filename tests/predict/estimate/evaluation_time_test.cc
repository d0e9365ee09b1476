// The predicted time of an evaluation where it can be computed by hand: a device on which one thing takes time.
#include "planner/predict/estimate/evaluation_time.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/estimate/step_speed.h"
#include "planner/predict/estimate/step_time.h"
#include "tests/predict/estimate/made_up_rates.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::OnlyKinds;

const std::vector<OpKind> kForwardScans = {OpKind::kMambaScan};

// The text model with a Mamba layer on each of its stages; a block is one sample.
Plan EvaluatedPipeline(int stages, int samples, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = {
      absl::StrCat("models.hybrid_moe_tiny.pattern=", std::string(static_cast<size_t>(stages), 'M')),
      absl::StrCat("modules.language.placement={first_rank: 0, ranks: ", stages, "}"),
      absl::StrCat("modules.language.parallel={pp: ", stages, "}"), absl::StrCat("cluster.gpus_per_node=", stages),
      absl::StrCat("evaluation={every_samples: 80, sets: [{name: a, samples: ", samples - 1,
                   ", seed: 9}, {name: b, samples: 1, seed: 8}]}")};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return CompiledFile(InSource("recipes/nemotron_moe_lm_tiny.yaml"), overrides);
}

// A pipeline is filled once, and then each round takes the time of one stage, however many there are.
TEST(EvaluationTime, IsThatOfItsRoundsBehindEachOther) {
  const double unit =
      TimeEvaluation(EvaluatedPipeline(1, 2), Rates(OnlyKinds(kForwardScans, 1))) / 2;  // a forward of one layer
  ASSERT_GT(unit, 0);
  for (const auto& [stages, samples] : {std::pair(1, 5), std::pair(1, 100), std::pair(3, 4), std::pair(3, 60)}) {
    const double length = TimeEvaluation(EvaluatedPipeline(stages, samples), Rates(OnlyKinds(kForwardScans, 1)));
    EXPECT_NEAR(length / unit, samples + stages - 1, 1e-6) << stages << " stages, " << samples << " samples";
  }
}

TEST(EvaluationTime, IsNoneWithoutSetsOrDevice) {
  EXPECT_EQ(TimeEvaluation(CompiledFile(InSource("recipes/nemotron_moe_lm_tiny.yaml"))), 0);
  EXPECT_EQ(TimeEvaluation(EvaluatedPipeline(1, 2)), 0);
  EXPECT_EQ(CountEvaluations(CompiledFile(InSource("recipes/nemotron_moe_lm_tiny.yaml"))), 0);
}

// 160 samples: before the first step, and after 80 and 160 of them, which is the end.
TEST(EvaluationTime, CountsEvaluationsOfTheBudget) {
  EXPECT_EQ(CountEvaluations(EvaluatedPipeline(1, 2)), 3);
  EXPECT_EQ(CountEvaluations(EvaluatedPipeline(1, 2, {"evaluation.every_samples=96"})), 3);  // 96, and the end
  EXPECT_EQ(CountEvaluations(EvaluatedPipeline(1, 2, {"evaluation.every_samples=800"})), 2);
}

TEST(EvaluationTime, IsInTheHoursOfTheBudget) {
  const std::vector<std::string> gpus = {"cluster.gpu=h200_sxm", "precision.params=bf16"};
  const Plan plan = EvaluatedPipeline(1, 40, gpus);
  Plan without = plan;
  without.evaluation = {};
  const StepTime time = TimeStep(plan);
  const StepSpeed with = SpeedOf(plan, time), alone = SpeedOf(without, time);
  EXPECT_EQ(with.evaluations, 3);
  EXPECT_GT(with.evaluation, 0);
  EXPECT_NEAR(with.hours, alone.hours + 3 * with.evaluation / 3600, 1e-12);
  EXPECT_EQ(alone.evaluation, 0);
}

// A step keeps activations for its backwards, so it is fuller than a round, unless nothing learns.
TEST(EvaluationMemory, IsThatOfTheFullerList) {
  const Plan plan = EvaluatedPipeline(1, 2);
  Plan round = plan;
  round.roles[0].step = round.roles[0].evaluate;
  const int64_t of_step = EstimateMemory(plan)[0].planned.activations,
                of_round = EstimateMemory(round)[0].planned.activations;
  EXPECT_GT(of_step, of_round);
  EXPECT_GT(of_round, 0);
  Plan fuller = plan;
  fuller.roles[0].step.clear();
  EXPECT_EQ(EstimateMemory(fuller)[0].planned.activations, of_round);
}

}  // namespace
}  // namespace planwright
