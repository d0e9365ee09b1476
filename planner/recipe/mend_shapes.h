// Values of a wrong shape whose meaning is clear: the rows of mends.def.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

struct MendRow {
  std::string_view where, shape, meant;
  DiagnosticKind kind;
  std::string_view found, help;
  bool restates;  // Diagnostic::restates
};
std::span<const MendRow> MendRows();

// Tells what a row says of the value, and puts what is meant in its place. `where`: of the value, in the table of keys;
// an item of a list ends in []. `spec`: its key; null for a map by its name and for an item. `path`: in the recipe.
// `damaged`: gets the paths in the table of keys of what was made up for a kind, if it is not null. False: no row fits.
bool MendShape(std::string_view where, const KeySpec* spec, YamlNode& value, const std::string& path,
               Diagnostics& problems, std::set<std::string, std::less<>>* damaged = nullptr);

}  // namespace planwright
