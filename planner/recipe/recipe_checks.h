// What must hold between keys, and settings that no room behind the reader looks at. Sizes of models and grids are
// topology's to check, rates the budget's, bridges and data theirs.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"
#include "planner/recipe/recipe_fields.h"

namespace planwright {

// The section `data`, once the modules are read. `fields`: as it is written, to tell a missing key from a wrong one.
void CheckData(const Recipe& recipe, const RecipeFields& fields, Diagnostics& problems);

// Settings that train worse than their author means, or not at all: gradients that travel in bf16 (PW0412), nothing
// that trains (PW0508), keys that another makes pointless (PW0109), recompute of what is not there (PW0509), and, as a
// warning, a frozen encoder with random crops (PW0507).
void CheckSettingsMeant(const Recipe& recipe, Diagnostics& problems);

}  // namespace planwright
