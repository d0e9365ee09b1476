#include "planner/compile/budget/budget_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/plan/lr_schedule.h"
#include "tests/support/golden.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Grid> kProductionGrids = {{.first_rank = 0, .dp = 8}, {.first_rank = 8, .tp = 2, .dp = 128}};

// 33 nodes: docs/training/budget.md#exact-values, docs/layouts/grids.md#topologies.
Recipe Production() {
  Recipe recipe = BuildRecipe({BuildEncoder(0, 8), BuildLanguage(8, 256, {.tp = 2})});
  recipe.batch.global_samples.value = 768;
  recipe.budget.train_samples.value = 122070313;
  LearningRateRecipe& rate = recipe.budget.learning_rate;
  rate.peak.value = 1.2e-3;
  rate.min.value = 1.2e-5;
  rate.warmup_samples = Located<int64_t>(1024000, Line(24));
  rate.decay_samples = Located<int64_t>(121046313, Line(25));
  rate.style = {"wsd", Line(26)};
  rate.wsd_decay_samples = Located<int64_t>(18310547, Line(27));
  rate.wsd_style = Located<std::string>("minus_sqrt", Line(28));
  recipe.budget.weight_decay = {{0.1, Line(29)}, {0.1, Line(30)}, {"constant", Line(31)}};
  return recipe;
}

TEST(BudgetSamples, Production) {
  Diagnostics diagnostics;
  const auto budget = BudgetSamples(Production(), kProductionGrids, diagnostics);
  ASSERT_TRUE(budget);
  // The floor, which the reference takes, is 158945. Here every sample of the budget is trained on
  // (docs/training/budget.md#steps).
  EXPECT_EQ(budget->steps, 158946);
  EXPECT_EQ(budget->microbatches, 6);
  EXPECT_EQ(budget->samples_past_budget, 158946LL * 768 - 122070313);
  ASSERT_EQ(budget->segments.size(), 4u);
  std::vector<std::string> kinds;
  for (size_t i = 0; i < 4; ++i) {
    kinds.push_back(budget->segments[i].kind);
    EXPECT_EQ(budget->segments[i].first_sample, i == 0 ? 0 : budget->segments[i - 1].end_sample);
  }
  EXPECT_THAT(kinds, ElementsAre("warmup", "stable", "decay", "end"));
  EXPECT_EQ(budget->segments[1].first_sample, 1024000);
  EXPECT_EQ(budget->segments[2].first_sample, 102735766);
  EXPECT_EQ(budget->segments[3].first_sample, 121046313);
  EXPECT_EQ(budget->segments[3].end_sample, 122070313);
  EXPECT_EQ(LearningRateAt(budget->learning_rate, 768), 9e-07);
  // The warmup was subtracted from decay_samples.
  EXPECT_THAT(KindsAndLines(diagnostics), ElementsAre("SamplesPastBudget:21", "DecayEndsEarly:25"));
  EXPECT_THAT(diagnostics.sorted()[0].message, HasSubstr("by 215 samples"));
  EXPECT_THAT(diagnostics.sorted()[0].help, HasSubstr("122069760 or 122070528"));
  EXPECT_THAT(diagnostics.sorted()[1].message, HasSubstr("the last 1024000 samples (1333 steps)"));
}

TEST(BudgetSamples, SampleBudgetsOfTheReference) {
  for (const json& c : Golden().at("lr_budget_derivation")) {
    if (!c.at("ok").get<bool>()) continue;  // the reader refuses a recipe without train_samples
    Diagnostics diagnostics;
    const auto budget = BudgetSamples(Production(), kProductionGrids, diagnostics);
    ASSERT_TRUE(budget);
    ASSERT_EQ(c.at("id"), "samples_full");
    EXPECT_EQ(budget->learning_rate.warmup_samples, c["derived"]["lr_warmup_steps"].get<double>());
    EXPECT_EQ(budget->learning_rate.decay_samples, c["derived"]["lr_decay_steps"].get<int64_t>());
    EXPECT_EQ(budget->learning_rate.wsd_decay_samples, c["derived"]["wsd_decay_steps"].get<int64_t>());
    EXPECT_EQ(budget->weight_decay.samples, c["derived"]["wd_incr_steps"].get<int64_t>());
    EXPECT_EQ(budget->steps, c.at("train_iters").get<int64_t>() + 1);  // ceil
  }
}

TEST(BudgetSamples, DecayEndsWithTheTrainingByDefault) {
  Recipe recipe = BuildRecipe({BuildLanguage(0, 2)});
  recipe.budget.learning_rate.style = {"cosine", Line(26)};
  recipe.budget.learning_rate.warmup_fraction = Located<double>(0.125, Line(24));
  Diagnostics diagnostics;
  const auto budget = BudgetSamples(recipe, {{.dp = 2}}, diagnostics);
  ASSERT_TRUE(budget);
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_EQ(budget->learning_rate.decay_samples, 80);
  EXPECT_EQ(budget->learning_rate.warmup_samples, 10);
  EXPECT_EQ(budget->steps, 10);
  EXPECT_EQ(budget->microbatches, 4);
  EXPECT_EQ(budget->samples_past_budget, 0);
  EXPECT_EQ(budget->segments.size(), 2u);
}

TEST(BudgetSamples, BatchThatDoesNotDivide) {
  Recipe recipe = Production();
  recipe.batch.global_samples.value = 700;
  recipe.batch.micro_samples.value = 2;
  Diagnostics diagnostics;
  EXPECT_FALSE(BudgetSamples(recipe, kProductionGrids, diagnostics));
  const Diagnostic problem = diagnostics.sorted()[0];
  EXPECT_EQ(problem.kind, DiagnosticKind::kBatchDoesNotDivide);
  EXPECT_EQ(problem.where.line, 10);
  EXPECT_THAT(problem.message, HasSubstr("700 is not a multiple of micro_samples 2 x language dp 128 = 256"));
  EXPECT_THAT(problem.help, HasSubstr("512 or 768"));
}

// lr_ctor_validation of the golden file: each case overrides values of the wsd schedule of lr_cases.
TEST(BudgetSamples, ScheduleConstraintsOfTheReference) {
  const json& base = GoldenCase("lr_cases", "wsd_cosine").at("config");
  int compared = 0;
  for (const json& c : Golden().at("lr_ctor_validation")) {
    if (c.at("id") == "override_and_use_ckpt") continue;  // a rule for loading its checkpoints, which we do not read
    json config = base;
    config.update(c.at("override"));
    Recipe recipe = BuildRecipe({BuildLanguage(0, 1)});
    recipe.budget.train_samples.value = config["wd_incr_steps"];
    LearningRateRecipe& rate = recipe.budget.learning_rate;
    rate.peak.value = config["max_lr"];
    rate.min.value = config["min_lr"];
    rate.init.value = config["init_lr"];
    rate.warmup_samples = config["lr_warmup_steps"].get<int64_t>();
    rate.decay_samples = config["lr_decay_steps"].get<int64_t>();
    const std::string style = config["lr_decay_style"];
    rate.style = style == "WSD" ? std::string("wsd") : style;
    if (!config["wsd_decay_steps"].is_null()) rate.wsd_decay_samples = config["wsd_decay_steps"].get<int64_t>();
    if (!config["lr_wsd_decay_style"].is_null()) rate.wsd_style = config["lr_wsd_decay_style"].get<std::string>();
    recipe.budget.weight_decay = {config["start_wd"].get<double>(), config["end_wd"].get<double>(),
                                  config["wd_incr_style"].get<std::string>()};
    Diagnostics diagnostics;
    EXPECT_EQ(BudgetSamples(recipe, {{.dp = 1}}, diagnostics).has_value(), c.at("ok").get<bool>()) << c.at("id");
    ++compared;
  }
  EXPECT_GE(compared, 7);
}

std::vector<std::string> ProblemsOf(const Recipe& recipe) {
  Diagnostics diagnostics;
  EXPECT_FALSE(BudgetSamples(recipe, kProductionGrids, diagnostics));
  std::vector<std::string> found;
  for (const std::string& problem : KindsAndLines(diagnostics)) found.push_back(problem);
  return found;
}

TEST(BudgetSamples, ScheduleProblemsAreLocated) {
  Recipe recipe = Production();
  recipe.budget.learning_rate.min.value = 1;
  recipe.budget.learning_rate.init = {2, Line(32)};
  recipe.budget.weight_decay.start.value = 0.2;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("LearningRateRange:23", "WeightDecayRange:29", "LearningRateRange:32"));
  recipe = Production();
  recipe.budget.learning_rate.warmup_samples->value = 121046313;
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("WarmupTooLong:24"));
  recipe = Production();
  recipe.budget.learning_rate.warmup_fraction = Located<double>(0.1, Line(33));
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("WarmupTwice:33"));
  recipe = Production();
  recipe.budget.learning_rate.wsd_style.reset();
  recipe.budget.learning_rate.wsd_decay_samples.reset();
  EXPECT_THAT(ProblemsOf(recipe), ElementsAre("WsdIncomplete:26"));
}

// Segments say where the curve changes: the rate is flat within `stable` and at its minimum within `end`.
TEST(BudgetSamples, SegmentsFollowTheCurve) {
  Diagnostics diagnostics;
  const auto budget = BudgetSamples(Production(), kProductionGrids, diagnostics);
  ASSERT_TRUE(budget);
  const LearningRate& rate = budget->learning_rate;
  const auto& s = budget->segments;
  EXPECT_LT(LearningRateAt(rate, s[0].end_sample - 1), rate.peak);
  EXPECT_EQ(LearningRateAt(rate, s[1].first_sample), rate.peak);
  EXPECT_EQ(LearningRateAt(rate, s[1].end_sample - 1), rate.peak);
  EXPECT_LT(LearningRateAt(rate, s[2].first_sample + 1), rate.peak);
  EXPECT_GT(LearningRateAt(rate, s[2].end_sample - 1), rate.min);
  EXPECT_EQ(LearningRateAt(rate, s[3].first_sample), rate.min);
}

}  // namespace
}  // namespace planwright
