#include "planner/verify/verify.h"

#include <utility>

#include "planner/plan/plan_ranges.h"

namespace planwright {

namespace {

std::vector<Violation> AllRules(const Plan& plan, std::vector<RoleEstimate>* memory) {
  std::vector<Violation> violations;
  const auto add = [&](std::vector<Violation> found) {
    violations.insert(violations.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  };
  if (const std::string problem = RangeProblem(plan); !problem.empty()) return {{"V11", "the plan has " + problem}};
  add(VerifyPlacement(plan));
  add(VerifyGroups(plan));
  if (!violations.empty()) return violations;
  add(VerifyBudget(plan));
  add(VerifyCalls(plan));
  if (!violations.empty()) return violations;  // microbatches of no size and programs without an end cannot be followed
  const PlanIndex index(plan);
  add(VerifyStorage(index));
  if (!violations.empty()) return violations;
  add(VerifyValues(index));
  const std::vector<MicrobatchCalls> microbatches = CallsOfMicrobatches(index);
  add(VerifyFrames(index, microbatches));
  if (!violations.empty()) return violations;  // the rest follows values from where they are made
  add(VerifyBackward(index, microbatches));
  add(VerifyBridges(index));
  add(VerifySamples(index));
  add(VerifyMeanings(index));
  add(VerifyUpdates(index));
  add(VerifyCheckpoint(plan));
  add(VerifyProgress(plan));
  if (!violations.empty()) return violations;
  add(VerifyRows(index));
  add(VerifyMemory(plan, memory));
  // Last: what breaks another rule is told by that rule, which says what would go wrong.
  add(VerifyModel(index));
  add(VerifyGraphs(index, microbatches));
  add(VerifyRecompute(index, microbatches));
  add(VerifyFollows(index));
  add(VerifyPrograms(index));
  add(VerifySiblings(index));
  return violations;
}

// What breaks the plan as a whole is told at its first module.
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
