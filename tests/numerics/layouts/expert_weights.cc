// The weights of a token's experts by the rules that are not the usual ones: of one expert divided by itself, of
// several not divided.
#include "tests/numerics/layouts.h"

namespace planwright::testing {

std::vector<Layout> ExpertWeightLayouts() {
  const std::vector<std::string> grid = Join(LanguageOn(0, 4, 2, 2), Parallel("language", {{"expert_tp", 2}}));
  const auto text = [&](const std::string& name, const std::vector<std::string>& overrides,
                        const std::vector<std::string>& training) {
    return Layout{name, Join(grid, overrides), training, kTextRecipe, {}};
  };
  return {
      text("one_expert_divided_ep2_expert_tp2", {},
           {"models.hybrid_moe_tiny.moe.top_k=1", "models.hybrid_moe_tiny.moe.normalized=true"}),
      text("experts_undivided_gathered_ep2_expert_tp2", {"modules.language.parallel.dispatch=all_gather"},
           {"models.hybrid_moe_tiny.moe.top_k=3", "models.hybrid_moe_tiny.moe.normalized=false"}),
  };
}

}  // namespace planwright::testing
