// Finds what is right but elsewhere in a recipe: words of other programs, keys one level too high, lists where maps
// must be. It tells them, and mends the tree, so that the checks of keys (key_checks.h) find what else is wrong.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Tells, and mends:
//   modules and models that only overrides name, whose name is near one of the recipe (PW0108);
//   lists where a map must be and the other way round, and a value in place of a section that it says all of (PW0104),
//   also with the `ranks` beside it that a placement lacks;
//   what an evaluation set has without `sets` around it (PW0101);
//   options of sbatch that a comma in a list cuts in two (PW0107);
//   devices that are known by their data sheets only (PW0106);
//   unknown keys that exist deeper in the same map or once elsewhere, and words of other programs (PW0101).
// Returns the paths of keys of which it is told that they are missing.
std::set<std::string, std::less<>> MendTree(YamlNode& recipe, Diagnostics& problems);

}  // namespace planwright
