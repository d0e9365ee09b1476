// Which pipeline stage each layer of a module is on, from what its recipe says: `|` in the pattern, layers of every
// stage, layers of the first and last stage, or evenly.
#pragma once

#include <optional>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The stage of each layer, in order; every layer has one. Nothing, and located problems (PW0501 to PW0503), when the
// recipe's split does not deal all layers to exactly `parallel.pp` stages.
std::optional<std::vector<int>> StagesOfLayers(const ModuleRecipe& module, Diagnostics& diagnostics);

// The place to point at: the stages' own keys where they are written, else the layers.
Location PlaceOfStages(const ModuleRecipe& module);

}  // namespace planwright
