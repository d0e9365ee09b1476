#include "planner/run/measure/traced_steps.h"

#include <algorithm>
#include <cmath>

#include "planner/predict/estimate/step_time.h"

namespace planwright {
namespace {

// The first steps also allocate memory and load libraries.
constexpr int64_t kFirst = 3, kUsual = 4;

// Then power limits the clock of a GPU. On an H200 the second step of 0.57 s was 3.5 % faster than those behind it, of
// 1.1 and 1.3 s it was 1.5 and 1 %, and after 4 s of steps nothing changed.
constexpr double kWarmUpSeconds = 4;

// Short steps are repeated more often, as a machine may be busy with something else for a moment; but traces must not
// become large.
int64_t Repetitions(const StepTime& step) {
  constexpr double kShortSeconds = 1.5, kShortFlops = 1e10;
  constexpr int64_t kMostEntries = 100'000;
  int64_t steps = kUsual;
  size_t entries = 1;
  for (const RoleTime& role : step.roles) entries = std::max(entries, role.entries.size());
  if (step.length < (step.seconds ? kShortSeconds : kShortFlops))
    steps = std::clamp(kMostEntries / static_cast<int64_t>(entries), kUsual, kMostProfiledSteps);
  return steps;
}

}  // namespace

StepRange TracedSteps(const Plan& plan, bool on_gpus) {
  const StepTime step = TimeStep(plan);
  int64_t count = Repetitions(step);
  int64_t first = kFirst;
  if (on_gpus && step.seconds) {
    const double warm = std::min(std::ceil(kWarmUpSeconds / step.length), static_cast<double>(plan.budget.steps));
    first = std::max(first, 2 + static_cast<int64_t>(warm));
  }
  // Where there are fewer steps, the usual number of repetitions comes before warmth, and that before more of them.
  count = std::max(std::min(count, plan.budget.steps - first + 1), std::min(count, kUsual));
  first = std::max(std::min(first, plan.budget.steps - count + 1), std::min(kFirst, plan.budget.steps));
  return {first, std::min(first + count - 1, plan.budget.steps)};
}

}  // namespace planwright
