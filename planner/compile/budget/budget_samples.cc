#include "planner/compile/budget/budget_samples.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"
#include "planner/compile/budget/check_rates.h"
#include "planner/compile/budget/check_size.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

// A microbatch has micro_samples for each lane of the language model; encoders are dealt the same samples.
int LanguageLanes(const Recipe& recipe, const std::vector<Grid>& grids) {
  for (size_t i = 0; i < recipe.modules.size(); ++i) {
    if (CarriesLoss(recipe.modules[i].model)) return grids[i].dp;
  }
  Bug("a budget needs the language module's grid");
}

// A global batch must be whole microbatches: every step runs the same programs.
bool CheckBatch(const Recipe& recipe, int64_t lanes, Diagnostics& diagnostics) {
  if (!AllKnown(recipe.batch.global_samples, recipe.batch.micro_samples)) return false;
  const int64_t global = *recipe.batch.global_samples, micro = *recipe.batch.micro_samples, block = micro * lanes;
  if (micro < 1 || global < 1 || (AllKnown(recipe.budget.train_samples) && *recipe.budget.train_samples < 1)) {
    diagnostics.Error(DiagnosticKind::kOutOfRange, recipe.batch.global_samples.where,
                      absl::StrCat("global_samples ", global, ", micro_samples ", micro, ", train_samples ",
                                   *recipe.budget.train_samples),
                      "use 1 or more for each");
    return false;
  }
  if (global % block == 0) return true;
  const int64_t below = global / block * block;
  Diagnostic& problem = diagnostics.Error(
      DiagnosticKind::kBatchDoesNotDivide, recipe.batch.global_samples.where,
      absl::StrCat("global_samples ", global, " is not a multiple of micro_samples ", micro, " x language dp ", lanes,
                   " = ", block),
      below > 0 ? absl::StrCat("use ", below, " or ", below + block) : absl::StrCat("use ", block, " or a multiple"));
  if (recipe.batch.micro_samples.where.known()) {
    problem.notes.push_back({recipe.batch.micro_samples.where, absl::StrCat("micro_samples is ", micro, " here")});
  }
  return false;
}

// Sizes of tensors are products of this number: bounded here, they stay within 64 bits.
bool CheckTokens(const Recipe& recipe, Diagnostics& diagnostics) {
  const Located<int64_t>&samples = recipe.batch.micro_samples, &length = recipe.batch.sequence_length;
  if (!AllKnown(samples, length)) return false;
  if (*samples <= kMostTokens / *length) return true;
  diagnostics.Error(DiagnosticKind::kOutOfRange, samples.where.known() ? samples.where : length.where,
                    absl::StrCat("a microbatch of ", *samples, " samples of ", *length, " tokens"),
                    absl::StrCat("use at most ", kMostTokens, " tokens a microbatch"));
  return false;
}

// Stretches of the learning-rate curve over [0, train_samples), for pages and logs
// (docs/training/budget.md#learning-rate). They touch; empty ones are left out.
std::vector<Segment> SegmentsOf(const LearningRate& rate, int64_t train_samples) {
  const int64_t warmup = static_cast<int64_t>(std::ceil(rate.warmup_samples));
  int64_t decay = warmup, end = rate.decay_samples;
  if (rate.style == "constant") decay = end = train_samples;
  // The wsd decay is counted back from decay_samples. One that is longer than the rest begins behind the warmup.
  if (rate.style == "wsd") decay = std::max(warmup, rate.decay_samples - rate.wsd_decay_samples);

  std::vector<Segment> segments;
  int64_t first = 0;
  auto add = [&](const char* kind, int64_t until) {
    until = std::min(until, train_samples);
    if (until <= first) return;
    segments.push_back({kind, first, until});
    first = until;
  };
  add("warmup", warmup);
  add("stable", decay);
  add("decay", end);
  add("end", train_samples);
  return segments;
}

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

// Warnings PW0407 and PW0409 (decay and samples past the end), PW0410 (warmup that never ends), PW0413 (wsd decay that
// is too long), PW0414 (rates without effect). Step t, from 1, trains at the rate of sample (t - 1) * global_samples.
void LintBudget(const Recipe& recipe, const Budget& budget, Diagnostics& diagnostics) {
  LintEarlyEnd(recipe.budget, budget, diagnostics);
  LintPastBudget(recipe, budget, diagnostics);
  LintWarmup(recipe.budget.learning_rate, budget, diagnostics);
  LintWsdDecay(recipe.budget.learning_rate, budget.learning_rate, diagnostics);
  LintUnusedRates(recipe.budget.learning_rate, budget.learning_rate, diagnostics);
}

}  // namespace

void CheckBudget(const Recipe& recipe, std::optional<int64_t> lanes, Diagnostics& diagnostics) {
  CheckTokens(recipe, diagnostics);
  if (lanes) CheckBatch(recipe, *lanes, diagnostics);
  CheckRates(recipe.budget, diagnostics);
}

std::optional<Budget> BudgetSamples(const Recipe& recipe, const std::vector<Grid>& grids, Diagnostics& diagnostics) {
  const int64_t lanes = LanguageLanes(recipe, grids);
  const bool tokens = CheckTokens(recipe, diagnostics);
  const bool batch = CheckBatch(recipe, lanes, diagnostics) && tokens;
  const bool size = batch && CheckPlanSize(recipe, grids, lanes, diagnostics);
  if (!CheckRates(recipe.budget, diagnostics) || !size || !AllKnown(recipe.budget.train_samples)) return std::nullopt;

  Budget budget = {.train_samples = *recipe.budget.train_samples,
                   .global_samples = *recipe.batch.global_samples,
                   .micro_samples = *recipe.batch.micro_samples,
                   .sequence_length = *recipe.batch.sequence_length};
  budget.microbatches = budget.global_samples / (budget.micro_samples * lanes);
  budget.block_samples = budget.global_samples / budget.microbatches;
  // Every step is a full global batch, so the last one may pass train_samples.
  budget.steps = (budget.train_samples + budget.global_samples - 1) / budget.global_samples;
  budget.samples_past_budget = budget.steps * budget.global_samples - budget.train_samples;
  budget.learning_rate = LearningRateOf(recipe.budget);
  const WeightDecayRecipe& decay = recipe.budget.weight_decay;
  budget.weight_decay = {*decay.start, *decay.end, *decay.style, budget.train_samples};
  budget.segments = SegmentsOf(budget.learning_rate, budget.train_samples);
  LintBudget(recipe, budget, diagnostics);
  return budget;
}

void CountRounds(const Budget& budget, EvaluationPlan& evaluation) {
  for (EvaluationSet& set : evaluation.sets)
    set.rounds = (set.samples + budget.block_samples - 1) / budget.block_samples;
}

}  // namespace planwright
