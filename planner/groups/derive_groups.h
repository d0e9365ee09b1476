// The process groups of every module, in creation order. Table: facts 1.4, without the gtp axis.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The world, then every module's groups in recipe order ("language.tp", ...), then one group per bridge of the ranks
// that it joins. Groups of one rank are there too. `used` stays false: lowering sets it. `bridges` are those of
// RouteBridges.
std::vector<Group> DeriveGroups(const std::vector<ModuleRecipe>& modules, const std::vector<Grid>& grids,
                                const std::vector<Bridge>& bridges);

}  // namespace planwright
