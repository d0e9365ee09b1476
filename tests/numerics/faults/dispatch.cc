// Faults of tokens that are gathered to the ranks of experts. On the layout ep has the same two ranks as tp.
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {

std::vector<PlanFault> DispatchFaults() {
  const Layout layout = {"gathered_ep2_tp2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 2, 2),
                                                  {"modules.language.parallel.dispatch=all_gather"})};
  return {
      {"gathered_sum_missing", layout, [](Plan& plan) { KeepOwnTerm(plan, "language.moe.forward", "y"); }},
      {"gathered_gradient_sum_missing", layout,
       [](Plan& plan) { KeepOwnTerm(plan, "language.moe.backward", "dn_rows"); }},
      {"gathered_weight_gradient_sum_missing", layout,
       [](Plan& plan) { KeepOwnTerm(plan, "language.moe.backward", "dweights"); }},
      {"gathered_tokens_of_the_other_rank", layout,
       [](Plan& plan) { SwapMembers(plan, "language.moe.forward", "n_all", OpKind::kSelectRows); }},
      {"gathered_weights_of_the_other_rank", layout,
       [](Plan& plan) { SwapMembers(plan, "language.moe.forward", "weights_all", OpKind::kSelectRows); }},
      {"gathered_gradients_of_the_other_rank", layout,
       [](Plan& plan) { SwapMembers(plan, "language.moe.backward", "dy_all", OpKind::kCombineRowsGrad); }},
  };
}

}  // namespace planwright::testing
