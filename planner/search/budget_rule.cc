#include "planner/search/budget_rule.h"

#include "planner/compile/budget/budget_samples.h"
#include "planner/recipe/model_facts.h"

namespace planwright {

int64_t BudgetRule::MicrobatchesOf(int64_t micro, int64_t lanes, int64_t stages, int64_t buckets) {
  const auto [at, is_new] = known_.try_emplace({micro, lanes, stages, buckets});
  if (!is_new) return at->second;
  // Data refuses them, but only where a whole plan is made.
  if (micro > 1 && *changed_.data.packed_documents) return at->second = 0;
  std::vector<Grid> grids(changed_.modules.size());
  for (size_t m = 0; m < grids.size(); ++m) {
    if (CarriesLoss(changed_.modules[m].model)) grids[m].dp = static_cast<int>(lanes);
  }
  // The rules count the stages of all modules together.
  grids.front().pp = static_cast<int>(stages - static_cast<int64_t>(grids.size()) + 1);
  changed_.batch.micro_samples.value = micro, changed_.gradients.buckets.value = buckets;
  Diagnostics problems;
  const std::optional<Budget> budget = BudgetSamples(changed_, grids, problems);
  return at->second = budget ? budget->microbatches : 0;
}

}  // namespace planwright
