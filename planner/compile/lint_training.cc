#include "planner/compile/lint_training.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/plan/layer_kinds.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

// Tests and measurements are shorter.
constexpr double kLongSeconds = 3600;
// What a failure may cost, where the recipe does not say.
constexpr double kBetweenCheckpoints = 1800;

// 1, 2 or 5 times a power of ten: the largest that is not above `value`, 1 at least.
int64_t RoundNumber(double value) {
  int64_t power = 1;
  while (10.0 * static_cast<double>(power) <= value) power *= 10;
  const double digits = value / static_cast<double>(power);
  return power * (digits >= 5 ? 5 : digits >= 2 ? 2 : 1);
}

void LintCheckpoint(const Recipe& recipe, const Plan& plan, double hours, Diagnostics& diagnostics) {
  if (plan.checkpoint.every_steps > 0) return;
  const double step = plan.launch.predicted_step;
  const int64_t every = std::min(RoundNumber(kBetweenCheckpoints / step), plan.budget.steps);
  diagnostics
      .Warning(DiagnosticKind::kNothingSaved, recipe.budget.train_samples.where,
               absl::StrFormat("the training is predicted to take %.3g h (%d steps of %.3g s) and saves no checkpoint: "
                               "what it has learned is lost when it ends or fails",
                               hours, plan.budget.steps, step),
               absl::StrFormat("add `checkpoint: {every_steps: %d}`: one every %.3g minutes, and one after the last "
                               "step",
                               every, static_cast<double>(every) * step / 60))
      .edits = {{"checkpoint.every_steps", absl::StrCat(every)}};
}

void LintPositions(const Recipe& recipe, Diagnostics& diagnostics) {
  const ModuleRecipe* language = LanguageOf(recipe);
  if (language == nullptr) return;
  const Located<std::string> pattern = PatternOf(language->model);
  if (pattern->find(FindLayerKind("mamba")->letter) != std::string::npos) return;
  diagnostics.Warning(DiagnosticKind::kNoPositions, pattern.where,
                      absl::StrCat("pattern \"", *pattern,
                                   "\" has no Mamba-2 layer (M), and attention here has no position embeddings: the "
                                   "model is not told the order of tokens"),
                      "let some layers be M; or silence the lint if the model is meant so");
}

}  // namespace

void LintTraining(const Recipe& recipe, const Plan& plan, Diagnostics& diagnostics) {
  const double seconds = plan.launch.predicted_step * static_cast<double>(plan.budget.steps);
  if (!(seconds > kLongSeconds)) return;
  LintCheckpoint(recipe, plan, seconds / 3600, diagnostics);
  LintPositions(recipe, diagnostics);
}

}  // namespace planwright
