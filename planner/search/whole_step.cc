#include "planner/search/whole_step.h"

#include <algorithm>

#include "planner/compile/compile.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/estimate/step_time.h"

namespace planwright {

std::optional<Plan> PlanOf(const TunedRecipe& tuned, const Candidate& candidate) {
  Diagnostics problems = tuned.levels;
  std::optional<Plan> plan = MakePlan(WithCandidate(tuned.recipe, candidate), tuned.cluster, problems);
  if (problems.has_errors()) plan.reset();
  return plan;
}

WholeStep SimulateWhole(const TunedRecipe& tuned, const Candidate& candidate) {
  WholeStep step;
  const std::optional<Plan> plan = PlanOf(tuned, candidate);
  step.valid = plan.has_value();
  if (!step.valid) return step;
  step.fits = true;
  for (const RoleEstimate& role : EstimateMemory(*plan)) {
    step.memory = std::max(step.memory, role.planned.total());
    step.fits &= role.limit == 0 || role.planned.total() <= role.limit - tuned.margin;
  }
  if (step.fits) step.seconds = StepLength(*plan, RatesOf(*plan));
  return step;
}

}  // namespace planwright
