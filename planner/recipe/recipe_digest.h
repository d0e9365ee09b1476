// The digest of a recipe: SHA-256 over its merged tree. Locations, comments, quotes and the order of keys do not
// matter, except the order of modules, which decides the order of groups. Values count as they are written: 1e-3 and
// 0.001 give different digests.
#pragma once

#include <string>

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// 64 hex digits.
std::string RecipeDigest(const YamlNode& recipe);

}  // namespace planwright
