// Origins: the lines of the recipe that parts of a plan come from. A plan lists modules first, then bridges, then the
// budget, and its parts name a line by its index in this list.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Indices in the list of OriginsOf. `index`: in Recipe::modules, in Recipe::bridges.
inline int OriginOfModule(size_t index) { return static_cast<int>(index); }
inline int OriginOfBridge(const Recipe& recipe, size_t index) {
  return static_cast<int>(recipe.modules.size() + index);
}

std::vector<Origin> OriginsOf(const Recipe& recipe);

}  // namespace planwright
