// Suggestions that work. The checks say what is wrong and which values take part; here other values are tried, each by
// reading and checking the changed recipe again. What a help then says has been tried, with the whole recipe.
#pragma once

#include <optional>

#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// CompileRecipe, and advice on what it finds: for people who wait for an answer. (Advice reads the recipe a few hundred
// times, so that who compiles many recipes does without.) For each problem that a change of one value ends without a
// new problem:
//   - Diagnostic::edits is this change, and the help says it; for the size of a grid, all values that do it;
//   - the problem is told at the value that the author changed last: an override, then the recipe itself, then the
//     files that it extends;
//   - other problems of the same value that the change ends are notes of this one.
// Suggestions that checks have made themselves are kept only if they work. Of very many problems none has edits, and of
// a large recipe, or for a large plan, few values are tried (docs/limits.md). `problems`: of reading `recipe`, which
// has not changed since.
std::optional<Plan> CompileWithAdvice(const Recipe& recipe, Diagnostics& problems, StepTime* time = nullptr);

}  // namespace planwright
