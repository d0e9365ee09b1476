// The keys that a search may change, for those who name some of them (`plan tune --fix`).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// With the names of the recipe's modules: "modules.language.parallel.tp", ...
std::vector<std::string> TunableKeys(const Recipe& recipe);

// InvalidArgument, all in one text: which of `fixed` stand for no key that a search may change.
absl::Status CheckFixedKeys(const Recipe& recipe, const std::vector<std::string>& fixed);

}  // namespace planwright
