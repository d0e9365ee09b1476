// Whether lowered programs stay within limits.h when every call is opened, which is how they are proved, weighed and
// run.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// False, and a located problem (PW0105), when they are too long.
bool CheckLength(const Recipe& recipe, const Plan& plan, Diagnostics& diagnostics);

}  // namespace planwright
