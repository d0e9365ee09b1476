// The pipeline stages of the layers of a module that is right.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "planner/compile/model/layer_pattern.h"
#include "planner/compile/model/stage_split.h"

namespace planwright::testing {

inline std::vector<int> StagesOf(const ModuleRecipe& module) {
  Diagnostics problems;
  const auto pattern = PatternOfLayers(module.model, problems);
  const auto stages = pattern ? StagesOfLayers(module, *pattern, problems) : std::nullopt;
  EXPECT_TRUE(stages.has_value());
  return stages.value_or(std::vector<int>());
}

}  // namespace planwright::testing
