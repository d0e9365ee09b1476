// A recipe's tree against the table of keys: unknown keys, missing ones, types, ranges, choices. Every problem, not the
// first. Keys that are misspelled become the keys that were meant, and others that are unknown leave the tree, so that
// what is behind them is looked at too.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

// The sections that a problem leaves without a value: all but unknown keys and settings that are known and refused.
std::set<std::string> CheckKeys(YamlNode& recipe, Diagnostics& problems);

// How many problems so far leave a value out.
int64_t ValuesLost(const Diagnostics& problems);

// Whether a value that holds no map has the type, range and choice of its key.
bool KeepsTo(const KeySpec& spec, const YamlNode& value);

}  // namespace planwright
