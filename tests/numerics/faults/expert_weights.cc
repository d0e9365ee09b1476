// Faults of the rule for the weights of a token's experts: the backward has the usual one.
#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

void UsualBackward(Plan& plan) {
  Instruction& backward = *FirstOf(BlockNamed(plan, "language.moe.backward"), OpKind::kRouteGrad);
  Require(backward.attributes.erase("normalized") == 1, "the backward has another rule than the usual one");
}

}  // namespace

std::vector<PlanFault> ExpertWeightFaults() {
  const std::vector<Layout> layouts = ExpertWeightLayouts();
  return {
      {"one_divided_score_with_the_other_backward", LayoutNamed(layouts, "one_expert_divided_ep2_expert_tp2"),
       UsualBackward},
      {"undivided_scores_with_the_other_backward", LayoutNamed(layouts, "experts_undivided_gathered_ep2_expert_tp2"),
       UsualBackward},
  };
}

}  // namespace planwright::testing
