// What programs are written from: finished parts of the plan.
#pragma once

#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct ProgramInputs {
  const std::vector<Module>& modules;  // recipe order, with buckets
  const std::vector<Bridge>& bridges;
  const Budget& budget;
  const DataPlan& data;
  const std::vector<StageSchedule>& schedule;  // of every stage, with all backwards
  int world_size = 0;
  DType dtype = DType::kFp32;  // of activations
  bool loads_weights = false;  // first weights come from a file
  bool checkpoints = false;    // the run writes checkpoints

  const Module* FindModule(std::string_view name) const {
    for (const Module& module : modules) {
      if (module.name == name) return &module;
    }
    return nullptr;
  }
};

}  // namespace planwright
