// Whether the sizes of a model fit together, and whether its module's axes can cut them evenly
// (docs/layouts/sequence.md). The statement of a model says what it needs (lines `needs` of model_statement.h).
#pragma once

#include <optional>
#include <vector>

#include "planner/compile/model/layer_pattern.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The pipeline stage of each layer. Nothing, and located problems (PW05xx), for sizes that fit on no layout, and for
// layer kinds and pipeline splits that cannot be planned. `pattern`: of the module's model (PatternOfLayers).
std::optional<std::vector<int>> CheckModelShape(const ModuleRecipe& module, const LayerPattern& pattern,
                                                Diagnostics& diagnostics);

// False, and located problems (PW0209), for sizes that the module's tp, cp, ep or expert_tp does not divide.
bool CheckLayout(const Recipe& recipe, const ModuleRecipe& module, const LayerPattern& pattern,
                 Diagnostics& diagnostics);

}  // namespace planwright
