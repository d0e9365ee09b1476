// What the optimizer keeps of every element that it steps, once: the planner writes it into checkpoints and counts its
// memory, the executor holds it. (verify states by itself what a checkpoint must keep.)
#pragma once

#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct OptimizerState {
  std::string_view name;  // NAME.exp_avg is its key in a checkpoint; of Bucket::master's type
  // `narrow`: weights are held in a narrower type than they are stepped in
  bool (*held)(const OptimizerPlan& optimizer, bool narrow);
};

inline constexpr OptimizerState kOptimizerStates[] = {
    {"master", [](const OptimizerPlan&, bool narrow) { return narrow; }},
    {"exp_avg", [](const OptimizerPlan&, bool) { return true; }},
    {"exp_avg_sq", [](const OptimizerPlan&, bool) { return true; }},
};

// Names of the states of weights that are held in `weights` and stepped in `master`, in the list's order.
inline std::vector<std::string_view> HeldStates(const OptimizerPlan& optimizer, DType weights, DType master) {
  std::vector<std::string_view> names;
  for (const OptimizerState& state : kOptimizerStates) {
    if (state.held(optimizer, weights != master)) names.push_back(state.name);
  }
  return names;
}

}  // namespace planwright
