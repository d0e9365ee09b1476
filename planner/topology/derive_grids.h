// A module's two factorisations from its rank count: dp and expert_dp are what the other sizes leave. Formula: facts
// 1.3.
#pragma once

#include <optional>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/axis.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Nothing, and located problems (PW0203, PW0204, PW0205), when a factorisation does not divide or a written dp is
// another.
std::optional<Grid> DeriveGrid(const ModuleRecipe& module, Diagnostics& diagnostics);

}  // namespace planwright
