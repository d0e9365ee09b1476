#include "planner/budget/budget_samples.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/budget/check_schedules.h"
#include "planner/budget/check_size.h"
#include "planner/budget/lint_budget.h"
#include "planner/budget/segments.h"
#include "planner/diagnostics/bug.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

int LanguageLanes(const Recipe& recipe, const std::vector<Grid>& grids) {
  for (size_t i = 0; i < recipe.modules.size(); ++i) {
    if (std::holds_alternative<HybridLmModel>(recipe.modules[i].model.model)) return grids[i].dp;
  }
  Bug("a budget needs the language module's grid");
}

bool CheckBatch(const Recipe& recipe, int64_t lanes, Diagnostics& diagnostics) {
  const int64_t global = *recipe.batch.global_samples, micro = *recipe.batch.micro_samples;
  if (global >= 1 && micro >= 1 && *recipe.budget.train_samples >= 1 && global % (micro * lanes) == 0) return true;
  const int64_t block = micro * lanes;
  if (micro < 1 || global < 1 || *recipe.budget.train_samples < 1) {
    diagnostics.Error(DiagnosticKind::kOutOfRange, recipe.batch.global_samples.where,
                      absl::StrCat("global_samples ", global, ", micro_samples ", micro, ", train_samples ",
                                   *recipe.budget.train_samples),
                      "use 1 or more for each");
    return false;
  }
  const int64_t below = global / block * block;
  Diagnostic& problem = diagnostics.Error(
      DiagnosticKind::kBatchDoesNotDivide, recipe.batch.global_samples.where,
      absl::StrCat("global_samples ", global, " is no multiple of micro_samples ", micro, " x language dp ", lanes,
                   " = ", block),
      below > 0 ? absl::StrCat("use ", below, " or ", below + block) : absl::StrCat("use ", block, " or a multiple"));
  if (recipe.batch.micro_samples.where.known()) {
    problem.notes.push_back({recipe.batch.micro_samples.where, absl::StrCat("micro_samples is ", micro, " here")});
  }
  return false;
}

bool CheckTokens(const Recipe& recipe, Diagnostics& diagnostics) {
  const Located<int64_t>&samples = recipe.batch.micro_samples, &length = recipe.batch.sequence_length;
  if (*samples <= kMostTokens / *length) return true;
  diagnostics.Error(DiagnosticKind::kOutOfRange, samples.where.known() ? samples.where : length.where,
                    absl::StrCat("a microbatch of ", *samples, " samples of ", *length, " tokens"),
                    absl::StrCat("use at most ", kMostTokens, " tokens a microbatch"));
  return false;
}

LearningRate RateOf(const BudgetRecipe& budget) {
  const LearningRateRecipe& recipe = budget.learning_rate;
  LearningRate rate = {.peak = *recipe.peak, .min = *recipe.min, .init = *recipe.init, .style = *recipe.style};
  rate.decay_samples = recipe.decay_samples ? **recipe.decay_samples : *budget.train_samples;
  if (recipe.warmup_samples) rate.warmup_samples = static_cast<double>(**recipe.warmup_samples);
  if (recipe.warmup_fraction) rate.warmup_samples = **recipe.warmup_fraction * static_cast<double>(rate.decay_samples);
  if (rate.style == "wsd") {
    rate.wsd_decay_samples = recipe.wsd_decay_samples ? **recipe.wsd_decay_samples : 0;
    rate.wsd_style = recipe.wsd_style ? **recipe.wsd_style : "";
  }
  return rate;
}

}  // namespace

bool CheckRates(const Recipe& recipe, Diagnostics& diagnostics) {
  const bool rate =
      CheckLearningRate(recipe.budget.learning_rate, RateOf(recipe.budget), recipe.budget.where, diagnostics);
  return CheckWeightDecay(recipe.budget.weight_decay, recipe.budget.where, diagnostics) && rate;
}

std::optional<Budget> BudgetSamples(const Recipe& recipe, const std::vector<Grid>& grids, Diagnostics& diagnostics) {
  const int64_t lanes = LanguageLanes(recipe, grids);
  const bool batch = CheckTokens(recipe, diagnostics) && CheckBatch(recipe, lanes, diagnostics) &&
                     CheckSize(recipe, grids, lanes, diagnostics);
  if (!CheckRates(recipe, diagnostics) || !batch) return std::nullopt;
  const LearningRate rate = RateOf(recipe.budget);

  Budget budget = {.train_samples = *recipe.budget.train_samples,
                   .global_samples = *recipe.batch.global_samples,
                   .micro_samples = *recipe.batch.micro_samples,
                   .sequence_length = *recipe.batch.sequence_length};
  budget.microbatches = budget.global_samples / (budget.micro_samples * lanes);
  budget.block_samples = budget.global_samples / budget.microbatches;
  budget.steps = (budget.train_samples + budget.global_samples - 1) / budget.global_samples;
  budget.samples_past_budget = budget.steps * budget.global_samples - budget.train_samples;
  budget.learning_rate = rate;
  const WeightDecayRecipe& decay = recipe.budget.weight_decay;
  budget.weight_decay = {*decay.start, *decay.end, *decay.style, budget.train_samples};
  budget.segments = SegmentsOf(rate, budget.train_samples);
  LintBudget(recipe, budget, diagnostics);
  return budget;
}

}  // namespace planwright
