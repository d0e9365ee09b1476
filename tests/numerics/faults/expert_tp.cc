// Faults of experts that are cut over expert_tp. On the layout all ranks send equally many rows (ep 1), and expert_tp
// has the same ranks as tp.
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {

std::vector<PlanFault> ExpertTpFaults() {
  const Layout layout = {"expert_tp2_tp2",
                         Join(EncoderOn(1, 1), LanguageOn(1, 2, 2, 1), Parallel("language", {{"expert_tp", 2}}))};
  return {
      {"expert_tp_sum_missing", layout, [](Plan& plan) { KeepOwnTerm(plan, "language.moe.forward", "out"); }},
      {"expert_tp_gradient_sum_missing", layout,
       [](Plan& plan) { KeepOwnTerm(plan, "language.moe.backward", "drows"); }},
      {"expert_tp_weight_gradient_sum_missing", layout,
       [](Plan& plan) { KeepOwnTerm(plan, "language.moe.backward", "drow_weights"); }},
      {"expert_tp_counts_of_the_other_member", layout,
       [](Plan& plan) { SwapMembers(plan, "language.moe.forward", "counts_all", OpKind::kExperts); }},
      {"expert_tp_rows_of_the_other_member", layout,
       [](Plan& plan) { SwapMembers(plan, "language.moe.forward", "rows_all", OpKind::kExperts); }},
  };
}

}  // namespace planwright::testing
