// What the rules of the budget say of a candidate: a global batch is whole microbatches, a plan is not too long
// (compile/budget/budget_samples.h), and packed documents have one sample in a microbatch. Answers are kept.
#pragma once

#include <map>
#include <tuple>

#include "planner/recipe/recipe.h"

namespace planwright {

class BudgetRule {
 public:
  explicit BudgetRule(const Recipe& recipe) : changed_(recipe) {}

  // Microbatches of a step; 0: the rules refuse it. `lanes`: of the language model. `stages`: of all modules.
  int64_t MicrobatchesOf(int64_t micro, int64_t lanes, int64_t stages, int64_t buckets);

 private:
  Recipe changed_;  // to ask the rules about
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int64_t> known_;
};

}  // namespace planwright
