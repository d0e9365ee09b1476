// Names of the layers of a block. Prefixes of layers may have the number of the block alone ({block} in statements), so
// that two layers of one block could have weights of one name.
#pragma once

#include "planner/compile/model/layer_pattern.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Whether no two layers of a block have weights, or probed values, of one name. Reports the first two that do (PW0502).
// And whether taps (model_statement.h) stand behind whole blocks, one behind each. `pattern`: of the model. `numbers`:
// of a module of it.
bool CheckBlockNames(const ModelRecipe& model, const LayerPattern& pattern, const ModelNumbers& numbers,
                     Diagnostics& diagnostics);

}  // namespace planwright
