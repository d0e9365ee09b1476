// What a recipe says, as 64 hex digits: SHA-256 over its merged tree, without places, comments, quotes and the order of
// keys (but with the order of modules, which decides the order of groups). Values count as written: 1e-3 and 0.001
// differ.
#pragma once

#include <string>

#include "planner/recipe/yaml_tree.h"

namespace planwright {

std::string RecipeDigest(const YamlNode& recipe);

// What the digest is taken over: one line of JSON.
std::string CanonicalText(const YamlNode& recipe);

}  // namespace planwright
