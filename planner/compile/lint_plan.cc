#include "planner/compile/lint_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/compile/prove_plan.h"
#include "planner/plan/op_table.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

constexpr double kMostWaiting = 1.0 / 3;  // of a step

// What the roles of the same modules do together.
struct Work {
  double ranks = 0, rank_seconds = 0;
};

// What would balance the ranks of the two: as many ranks as they have work, or the same ranks for both.
std::string BalanceHelp(const StepTime& time, const RoleTime& waits, const RoleTime& works) {
  if (waits.role->modules == works.role->modules) {
    return waits.role->name == works.role->name
               ? "give all lanes a sample: a smaller dp of the encoder, or more samples in a microbatch"
               : "move layers between the stages, or use more microbatches";
  }
  std::map<std::vector<std::string>, Work> by_modules;
  for (const RoleTime& role : time.roles) {
    Work& work = by_modules[role.role->modules];
    work.ranks += static_cast<double>(role.count());
    work.rank_seconds += static_cast<double>(role.count()) * (role.busy + role.communication);
  }
  const Work &less = by_modules[waits.role->modules], &more = by_modules[works.role->modules];
  const double ranks = less.ranks + more.ranks;
  const double fair = ranks * more.rank_seconds / std::max(1e-300, less.rank_seconds + more.rank_seconds);
  return absl::StrFormat(
      "with as many ranks as they have work, %s would have about %d of these %d ranks, not %d; or give both the same "
      "ranks. `plan show RECIPE time` says more",
      absl::StrJoin(works.role->modules, "+"), std::lround(fair), std::lround(ranks), std::lround(more.ranks));
}

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

// Whether an operation knows the order of tokens: it is given their positions, or it goes through all of them in their
// order, which is why cp cuts its features.
bool KnowsOrder(const OpInfo& info) {
  return info.cp_by_features || std::any_of(info.meanings.begin(), info.meanings.end(),
                                            [](const auto& meaning) { return meaning.what == "the positions"; });
}

bool KnowsOrder(const StatedPiece& piece, const ModelNumbers& numbers) {
  return std::any_of(piece.computes.begin(), piece.computes.end(), [&](const StatedCompute& compute) {
    return numbers.Hold(compute.when) && KnowsOrder(InfoOf(compute.kind));
  });
}

void LintPositions(const Recipe& recipe, const Plan& plan, Diagnostics& diagnostics) {
  const ModuleRecipe* language = LanguageOf(recipe);
  const Module* module = language ? plan.FindModule(*language->name) : nullptr;
  if (module == nullptr) return;
  const Located<std::string>& pattern = language->model.pattern;
  const ModelStatement& statement = StatementOfModel(language->model);
  const ModelNumbers numbers(plan.budget, *module, statement);
  if (KnowsOrder(statement.embed, numbers)) return;
  std::vector<std::string> titles, letters;
  for (const StatedLayer& layer : statement.layer_kinds) {
    if (!KnowsOrder(statement.layers.at(layer.letter), numbers)) continue;
    if (pattern->find(layer.letter) != std::string::npos) return;
    titles.push_back(absl::StrCat(layer.title, " layer (", std::string(1, layer.letter), ")"));
    letters.emplace_back(1, layer.letter);
  }
  if (letters.empty()) return;  // no pattern of this kind would tell more
  diagnostics.Warning(DiagnosticKind::kNoPositions, pattern.where,
                      absl::StrCat("pattern \"", *pattern, "\" has no ", absl::StrJoin(titles, " and no "),
                                   ", and its other layers know no positions: the model is not told the order of "
                                   "tokens"),
                      absl::StrCat("let some layers be ", absl::StrJoin(letters, " or "),
                                   "; or silence the lint if the model is meant so"));
}

}  // namespace

void LintTime(const Plan& plan, const StepTime& time, Diagnostics& diagnostics) {
  if (!(time.length > 0)) return;
  std::vector<const RoleTime*> roles;
  for (const RoleTime& role : time.roles) roles.push_back(&role);
  // Of those that wait alike, to a hundredth of the step, the first: leaders come before their siblings.
  const auto hundredths = [&](const RoleTime* role) {
    return std::lround(100 * role->waiting_for_others / time.length);
  };
  std::stable_sort(roles.begin(), roles.end(),
                   [&](const RoleTime* a, const RoleTime* b) { return hundredths(a) > hundredths(b); });
  std::set<std::vector<std::string>> warned;
  const std::vector<Diagnostic>& found = diagnostics.as_found();
  const bool idle_lanes_told = std::any_of(
      found.begin(), found.end(), [](const Diagnostic& problem) { return problem.kind == DiagnosticKind::kIdleLanes; });
  for (const RoleTime* role : roles) {
    if (role->waiting_for_others <= kMostWaiting * time.length || role->waits_for < 0) continue;
    if (!warned.insert(role->role->modules).second) continue;
    const RoleTime& works = time.roles[static_cast<size_t>(role->waits_for)];
    // Ranks of one role that wait for each other: some have no samples, which PW0309 may say already.
    if (idle_lanes_told && works.role->name == role->role->name) continue;
    const std::string what = role->what.empty() ? "" : absl::StrCat(" with ", role->what);
    diagnostics.Warning(
        DiagnosticKind::kRanksWait, LocationOf(plan, role->role->origin),
        absl::StrFormat("ranks of role %s%s wait for others for %.0f %% of a step of %.3g s, most for %s%s, which is "
                        "busy for %.0f %%",
                        role->role->name, what, 100 * role->waiting_for_others / time.length, time.length,
                        works.role->name, works.what.empty() ? "" : absl::StrCat(" with ", works.what),
                        100 * (works.busy + works.communication) / time.length),
        BalanceHelp(time, *role, works));
  }
}

void LintTraining(const Recipe& recipe, const Plan& plan, Diagnostics& diagnostics) {
  const double seconds = plan.launch.predicted_step * static_cast<double>(plan.budget.steps);
  if (!(seconds > kLongSeconds)) return;
  LintCheckpoint(recipe, plan, seconds / 3600, diagnostics);
  LintPositions(recipe, plan, diagnostics);
}

}  // namespace planwright
