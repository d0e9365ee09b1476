// Checks the tree of a recipe against the table of keys: unknown keys, missing keys, types, ranges and choices. Finds
// all problems, not only the first.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// A file with more unknown keys is not a recipe, and a longer list would help nobody. Nor is it looked for what more
// keys could mean.
inline constexpr size_t kMostUnknownKeys = 200;

// Checks all keys, and repairs the tree where a key is unknown: a misspelled key is renamed to the key that was
// probably meant, so that its value is checked too, and a value whose meaning is clear is mended; other unknown keys
// are removed. Returns the paths of values that are missing or wrong, mended or not, as Recipe::damaged has them.
// `told`: paths in the recipe of missing keys that are told already.
std::set<std::string, std::less<>> CheckKeys(YamlNode& recipe, const std::set<std::string, std::less<>>& told,
                                             Diagnostics& problems);

// Whether a value (not a map) has the type and range of its key, and is one of its choices.
bool IsValidValue(const KeySpec& spec, const YamlNode& value);

// The value as its key takes it: mended if its meaning is clear, as `bfloat16` is `bf16`. Nothing if it is not.
std::optional<YamlNode> MendedValue(const KeySpec& spec, const YamlNode& value);

}  // namespace planwright
