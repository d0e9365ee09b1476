#include "planner/compile/budget/lint_budget.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

int64_t RoundUp(int64_t value, int64_t of) { return (value + of - 1) / of * of; }

// decay_samples counts from the start of training. Who subtracts the warmup from it trains that many samples at the
// minimum rate at the end.
void LintEarlyEnd(const BudgetRecipe& recipe, const Budget& budget, Diagnostics& diagnostics) {
  const LearningRate& rate = budget.learning_rate;
  const int64_t left = budget.train_samples - rate.decay_samples;
  const int64_t steps = budget.steps - RoundUp(rate.decay_samples, budget.global_samples) / budget.global_samples;
  if (rate.style == "constant" || rate.min == rate.peak || left <= 0 || steps <= 0) return;
  diagnostics.Warning(
      DiagnosticKind::kDecayEndsEarly, recipe.learning_rate.decay_samples->where,
      absl::StrCat("the last ", left, " samples (", steps, steps == 1 ? " step" : " steps",
                   ") train at the minimum learning rate"),
      absl::StrCat("decay_samples counts from the start of training, warmup included: to decay until the end use ",
                   budget.train_samples));
}

void LintPastBudget(const Recipe& recipe, const Budget& budget, Diagnostics& diagnostics) {
  if (budget.samples_past_budget == 0) return;
  const int64_t above = RoundUp(budget.train_samples, budget.global_samples), below = above - budget.global_samples;
  diagnostics
      .Warning(DiagnosticKind::kSamplesPastBudget, recipe.budget.train_samples.where,
               absl::StrCat("the last step passes train_samples ", budget.train_samples, " by ",
                            budget.samples_past_budget, " samples"),
               absl::StrCat("every step is a full batch: use ", below > 0 ? absl::StrCat(below, " or ") : "", above,
                            ", which global_samples divides"))
      .notes.push_back(
          {recipe.batch.global_samples.where, absl::StrCat("global_samples is ", budget.global_samples, " here")});
}

void LintWarmup(const LearningRateRecipe& recipe, const Budget& budget, Diagnostics& diagnostics) {
  const double warmup = budget.learning_rate.warmup_samples;
  if (warmup <= static_cast<double>((budget.steps - 1) * budget.global_samples)) return;
  diagnostics.Warning(
      DiagnosticKind::kWarmupNeverEnds,
      recipe.warmup_samples ? recipe.warmup_samples->where : recipe.warmup_fraction->where,
      absl::StrCat("the warmup ends at sample ", static_cast<int64_t>(warmup), ", and the last step begins at sample ",
                   (budget.steps - 1) * budget.global_samples, ": the peak rate is never reached"),
      "shorten the warmup or train longer");
}

// The wsd decay is counted back from decay_samples. If it is so long that it should begin before the warmup ends, the
// rate drops as soon as the warmup ends.
void LintWsdDecay(const LearningRateRecipe& recipe, const LearningRate& rate, Diagnostics& diagnostics) {
  const int64_t begin = rate.decay_samples - rate.wsd_decay_samples;
  if (rate.style != "wsd" || static_cast<double>(begin) >= rate.warmup_samples) return;
  diagnostics.Warning(DiagnosticKind::kWsdTailTooLong, recipe.wsd_decay_samples->where,
                      absl::StrCat("the wsd decay of ", rate.wsd_decay_samples, " samples begins at sample ", begin,
                                   ", before ", rate.warmup_samples > 0 ? "the warmup ends" : "training begins",
                                   ": the rate drops below its peak at once"),
                      absl::StrCat("use at most ", rate.decay_samples - static_cast<int64_t>(rate.warmup_samples),
                                   ", decay_samples less the warmup"));
}

// A rate in the recipe that no sample is trained with.
void LintUnusedRates(const LearningRateRecipe& recipe, const LearningRate& rate, Diagnostics& diagnostics) {
  const auto warn = [&](const Located<double>& value, const char* name, const char* why, const char* help) {
    diagnostics.Warning(DiagnosticKind::kRateSettingUnused, value.where,
                        absl::StrCat(name, " ", *value, " has no effect: ", why), help);
  };
  if (recipe.init.where.known() && rate.init != 0 && rate.warmup_samples == 0) {
    warn(recipe.init, "init", "without a warmup the first sample trains at the peak",
         "add warmup_samples, or remove init");
  }
  if (recipe.min.where.known() && rate.min != rate.peak && rate.style == "constant") {
    warn(recipe.min, "min", "the rate of style constant never falls", "choose a style that decays, or remove min");
  }
}

}  // namespace

void LintBudget(const Recipe& recipe, const Budget& budget, Diagnostics& diagnostics) {
  LintEarlyEnd(recipe.budget, budget, diagnostics);
  LintPastBudget(recipe, budget, diagnostics);
  LintWarmup(recipe.budget.learning_rate, budget, diagnostics);
  LintWsdDecay(recipe.budget.learning_rate, budget.learning_rate, diagnostics);
  LintUnusedRates(recipe.budget.learning_rate, budget.learning_rate, diagnostics);
}

}  // namespace planwright
