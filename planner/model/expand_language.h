// Expands a language model into layers, parameters and storages (docs/model/language_model.md).
#pragma once

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Fills the parameters, storages, layers and counts of `module`. Its name, grid and frozen parts must be set.
// `sequence`: tokens of a sample, for the FLOPs. `stages`: the pipeline stage of each layer.
void ExpandLanguage(const HybridLmModel& model, int64_t sequence, const std::vector<int>& stages, Module& module);

}  // namespace planwright
