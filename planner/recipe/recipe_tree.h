// A recipe file, all it extends, and the command line's overrides, merged into one tree.
//
// Maps merge key by key, lists and scalars replace, later wins: the recipes of `extends` in order, then the file
// itself, then the overrides. One exception: a map that names another `kind` than the one below it replaces it whole,
// because its keys are other keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

// The file name that problems of overrides are reported under; its line i is overrides[i - 1].
inline constexpr char kCommandLine[] = "<command line>";

// Null with the reasons in `problems`. `extends` itself is not part of the result.
std::optional<YamlNode> ReadRecipeTree(const std::string& path, const std::vector<std::string>& overrides,
                                       Diagnostics& problems);

}  // namespace planwright
