#include "planner/search/tuned_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/compile/compile.h"
#include "planner/predict/estimate/memory.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/views/diff/diff.h"
#include "planner/views/show/time_words.h"

namespace planwright {
namespace {

// What most of the chain that bounds the step is.
void SetBound(const StepTime& time, TunedLayout& layout) {
  if (time.path.empty() || !(time.length > 0)) return;
  const PathPart& most = time.path.front();
  layout.bound = absl::StrCat(most.part, " ", most.kind);
  layout.bound_share = most.seconds / time.length;
}

void SetWaiting(const StepTime& time, TunedLayout& layout) {
  const auto most = std::max_element(time.roles.begin(), time.roles.end(), [](const RoleTime& a, const RoleTime& b) {
    return a.waiting_for_others < b.waiting_for_others;
  });
  if (most == time.roles.end() || !(most->waiting_for_others > 0)) return;
  layout.waits = NameOfRanks(*most);
  layout.waits_for = WaitsForText(time, static_cast<size_t>(most - time.roles.begin()));
  layout.waiting = most->waiting_for_others / time.length;
}

}  // namespace

TunedLayout FiguresOf(const Plan& plan) {
  TunedLayout layout;
  const StepTime time = TimeStep(plan);
  layout.seconds = time.length;
  if (time.seconds) layout.speed = SpeedOf(plan, time);
  for (const RoleEstimate& role : EstimateMemory(plan)) {
    layout.memory = std::max(layout.memory, role.planned.total());
    layout.limit = role.limit;
  }
  SetBound(time, layout);
  SetWaiting(time, layout);
  layout.digest = plan.digest;
  return layout;
}

std::optional<TunedLayout> ProveLayout(const TuneRequest& request, const TunedRecipe& tuned, const Candidate& candidate,
                                       const Plan* given) {
  std::vector<std::string> overrides = request.overrides, changes = tuned.changes;
  for (std::string& change : ChangesOf(tuned.recipe, candidate)) changes.push_back(std::move(change));
  overrides.insert(overrides.end(), changes.begin(), changes.end());
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(request.recipe, overrides, problems);
  if (!recipe || problems.has_errors()) return std::nullopt;
  const std::optional<Plan> plan = CompileRecipe(*recipe, problems);
  if (!plan) return std::nullopt;
  TunedLayout layout = FiguresOf(*plan);
  layout.changes = std::move(changes);
  layout.line = LineOf(tuned.recipe, candidate);
  layout.proved = !given || !DiffPlans(*given, *plan).may_change_loss();
  return layout;
}

}  // namespace planwright
