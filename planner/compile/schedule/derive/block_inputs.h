// What blocks are derived from: finished parts of the plan.
#pragma once

#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct BlockInputs {
  const std::vector<Module>& modules;  // recipe order; which buckets they have decides nothing
  const std::vector<Bridge>& bridges;
  const Budget& budget;
  const DataPlan& data;
  DType dtype = DType::kFp32;  // of activations
  bool evaluates = false;      // the run has evaluation sets

  bool sums_by_source() const { return evaluates && !data.sources.empty(); }  // as Plan::sums_by_source

  const Module* FindModule(std::string_view name) const {
    for (const Module& module : modules) {
      if (module.name == name) return &module;
    }
    return nullptr;
  }
};

}  // namespace planwright
