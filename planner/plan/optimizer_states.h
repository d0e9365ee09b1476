// What the optimizer keeps for every element that it steps. The planner lists these states in checkpoint rules and
// counts their memory, and the executor allocates them. verify/ does not use this table: it states by itself what a
// checkpoint must keep.
#pragma once

#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct OptimizerState {
  std::string_view name;  // in checkpoint keys: PARAMETER.exp_avg. The elements have the type Bucket::master
  // Whether the state is kept. `narrow`: the type of the weights is narrower than that of the master weights.
  bool (*held)(const OptimizerPlan& optimizer, bool narrow);
};

inline constexpr OptimizerState kOptimizerStates[] = {
    {"master", [](const OptimizerPlan&, bool narrow) { return narrow; }},
    {"exp_avg", [](const OptimizerPlan&, bool) { return true; }},
    {"exp_avg_sq", [](const OptimizerPlan&, bool) { return true; }},
};

// Names of the states that are kept, in the order of the table. `weights`: Bucket::dtype; `master`: Bucket::master.
inline std::vector<std::string_view> HeldStates(const OptimizerPlan& optimizer, DType weights, DType master) {
  std::vector<std::string_view> names;
  for (const OptimizerState& state : kOptimizerStates) {
    if (state.held(optimizer, weights != master)) names.push_back(state.name);
  }
  return names;
}

}  // namespace planwright
