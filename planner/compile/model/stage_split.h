// Splits the layers of a module into pipeline stages (docs/layouts/pipeline.md). A recipe gives the split in one of
// four ways: `|` in the pattern, the layers of every stage, the layers of the first and last stage, or nothing (an even
// split).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/compile/model/layer_pattern.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The split that a recipe asks for.
struct StageSplit {
  int pp = 1;
  int virtual_stages = 1;                            // stages of each rank; more than one needs `|`
  std::optional<int64_t> first_layers, last_layers;  // of the first and last stage; only without `|`
  std::optional<std::vector<int64_t>> stage_layers;  // of each stage; only without `|` and without the two
};

// The consecutive layers of one stage.
struct LayerStage {
  int pp_rank = 0, virtual_stage = 0;  // the stage is number `virtual_stage` on this pp coordinate
  std::string layers;
  int64_t first_layer = 0;
};

// Splits the layers of the main part of a pattern. Stages are in order of virtual stage, then pp coordinate. Every
// layer is in exactly one stage: a split that would leave layers out is an error (PW0503, reported at `where`).
std::optional<std::vector<LayerStage>> SplitIntoStages(const LayerPattern& pattern, const StageSplit& split,
                                                       const Location& where, Diagnostics& diagnostics);

// The pipeline stage of each layer of a module. Nothing, with problem PW0503, if the layers cannot be split into
// `parallel.pp` stages as the recipe says. `pattern`: of the module's model.
std::optional<std::vector<int>> StagesOfLayers(const ModuleRecipe& module, const LayerPattern& pattern,
                                               Diagnostics& diagnostics);

// The location for diagnostics about stages: the key that gives the split, else the layers of the model.
Location LocationOfStages(const ModuleRecipe& module);

}  // namespace planwright
