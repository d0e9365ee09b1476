// Slips in the text of a recipe, before it is YAML, whose meaning is clear.
#pragma once

#include <optional>
#include <string>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// The tree of a text that is no YAML, as it is meant: `-{from: vision, to: language}` is an item of a list. Tells what
// is wrong, with the value of the list as its edit, and what else is. Nothing, and nothing is told, if no such slip is
// all that is wrong.
std::optional<YamlNode> MeantTree(const std::string& text, const YamlOrigin& origin, Diagnostics& problems);

}  // namespace planwright
