// Finds what is right but elsewhere in a recipe: words of other programs, keys one level too high, lists where maps
// must be. It tells them, and mends the tree, so that the checks of keys (key_checks.h) find what else is wrong.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

struct MendedTree {
  std::set<std::string, std::less<>> told;     // paths of keys of which it is told that they are missing
  std::set<std::string, std::less<>> damaged;  // paths in the table of keys of values that were made up
};

// Tells, and mends:
//   values of a wrong shape whose meaning is clear (mends.def);
//   sections under another name, most of whose keys are those of one that is not there (PW0101);
//   modules and models that only overrides name, whose name is near one of the recipe (PW0108);
//   unknown keys that exist deeper in the same map or once elsewhere, and words of other programs (PW0101).
MendedTree MendTree(YamlNode& recipe, Diagnostics& problems);

}  // namespace planwright
