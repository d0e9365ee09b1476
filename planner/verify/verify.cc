#include "planner/verify/verify.h"

#include <utility>

#include "planner/plan/plan_ranges.h"
#include "planner/verify/rules.h"

namespace planwright {

namespace {

// The order is that of trust: a rule may index, divide and follow names that the rules before it have checked.
std::vector<Violation> AllRules(const Plan& plan, std::vector<RoleEstimate>* memory) {
  std::vector<Violation> violations;
  const auto add = [&](std::vector<Violation> found) {
    violations.insert(violations.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  };
  // Ranges of numbers first: within them every product that a rule makes fits 64 bits (docs/limits.md).
  if (const std::string problem = RangeProblem(plan); !problem.empty()) return {{"V11", "the plan has " + problem}};
  add(VerifyPlacement(plan));
  add(VerifyGroups(plan));
  if (!violations.empty()) return violations;  // coordinates and members mean nothing
  add(VerifyBudget(plan));
  add(VerifyCalls(plan));
  if (!violations.empty()) return violations;  // sample counts of 0 would be divisors, and calls may never end
  const PlanIndex index(plan);
  add(VerifyStorage(index));
  if (!violations.empty()) return violations;  // storages may name parameters and buckets that do not exist
  add(VerifyValues(index));
  const std::vector<MicrobatchCalls> microbatches = CallsOfMicrobatches(index);
  add(VerifySavedValues(index, microbatches));
  add(VerifyLayers(index, microbatches));
  add(VerifyCountedOnce(index));
  if (!violations.empty()) return violations;  // the rest follows values from where they are made
  add(VerifyBackward(index, microbatches));
  add(VerifyBridges(index));
  add(VerifyMicrobatches(index));
  add(VerifyMeanings(index));
  add(VerifyStates(index));
  add(VerifyUpdates(index));
  add(VerifyGradientSums(index));
  add(VerifyCheckpoint(plan));
  add(VerifyProgress(plan));
  if (!violations.empty()) return violations;  // the memory function walks linked programs, which must be sound
  add(VerifyRunTimeSizes(index));
  add(VerifyMemory(plan, memory));
  add(VerifyHostMemory(plan));
  // V11 is last. If a plan breaks another rule too, that rule should report it: it says what would go wrong.
  add(VerifyModules(index));
  add(VerifyForwardGraphs(index, microbatches));
  add(VerifyRecompute(index, microbatches));
  add(VerifyDerivedFields(index));
  add(VerifyEvaluationData(plan));
  add(VerifyPrograms(index, microbatches));
  add(VerifySiblings(index));
  add(VerifyFrees(index));
  return violations;
}

// A violation of the plan as a whole points at the first module that has a line.
int AnyOrigin(const Plan& plan) {
  for (const Module& module : plan.modules) {
    if (module.origin >= 0) return module.origin;
  }
  return plan.origins.empty() ? -1 : 0;
}

}  // namespace

std::vector<Violation> VerifyPlan(const Plan& plan, std::vector<RoleEstimate>* memory) {
  std::vector<Violation> violations = AllRules(plan, memory);
  for (Violation& violation : violations) {
    if (violation.origin < 0) violation.origin = AnyOrigin(plan);
    // A plan from a file may name an origin that it does not have.
    if (violation.origin >= static_cast<int>(plan.origins.size())) violation.origin = -1;
  }
  return violations;
}

}  // namespace planwright
