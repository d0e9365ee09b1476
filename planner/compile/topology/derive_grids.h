// Grids: each module's ranks in two views. dp and expert_dp are what the other sizes leave of the ranks
// (docs/layouts/grids.md#two-views).
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/axis.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Nothing, and located problems: a size out of range (PW0105), parallel sizes that do not divide the ranks in one of
// the views, or a written dp that is not the derived one (PW0203 to PW0205).
std::optional<Grid> DeriveGrid(const ModuleRecipe& module, Diagnostics& diagnostics);

// The number of ranks of all modules; `grids` cover the ranks from 0 on.
int WorldSizeOf(const std::vector<Grid>& grids);

}  // namespace planwright
