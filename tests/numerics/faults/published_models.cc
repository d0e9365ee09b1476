// Faults of dense MLP layers, and of the exact GELU.
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {

std::vector<PlanFault> PublishedModelFaults() {
  const Layout layout = LayoutNamed(PublishedModelLayouts(), "published_tp2_ep2");
  return {
      {"dense_sum_missing", layout, [](Plan& plan) { KeepOwnTerm(plan, "language.mlp.forward", "d"); }},
      {"dense_gradient_sum_missing", layout, [](Plan& plan) { KeepOwnTerm(plan, "language.mlp.backward", "dn"); }},
      {"exact_gelu_with_the_other_backward", layout,
       [](Plan& plan) {
         FirstOf(BlockNamed(plan, "radio_encoder.layer.backward"), OpKind::kGeluGrad)->attributes.erase("erf");
       }},
  };
}

}  // namespace planwright::testing
