// The keys that overrides of one recipe may name, for completion on the command line.
#pragma once

#include <string>
#include <vector>

#include "planner/recipe/yaml_tree.h"

namespace planwright {

struct OverrideKey {
  std::string path;                  // "modules.language.parallel.tp": the author's names filled in
  std::vector<std::string> choices;  // the values, where they can be listed
};

// Keys with a value of their own, in the key table's order; those of other kinds of model or data are left out, and so
// are items of lists.
std::vector<OverrideKey> OverrideKeys(const YamlNode& recipe);

}  // namespace planwright
