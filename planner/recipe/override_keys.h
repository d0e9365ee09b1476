// The keys that overrides of a recipe may name: for completion on the command line.
#pragma once

#include <string>
#include <vector>

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

struct OverrideKey {
  std::string path;                  // "modules.language.parallel.tp": with the names of this recipe
  std::vector<std::string> choices;  // all possible values; empty if they cannot be listed
};

// The keys with a value (not maps), in the order of the table of keys. Keys of other kinds of model or data, and keys
// inside lists, are left out.
std::vector<OverrideKey> OverrideKeys(const YamlNode& recipe);

}  // namespace planwright
