// Values that a key of a recipe could have in place of the one that it has: what suggestions are tried with. They are
// guesses from the value, from the other numbers of the problem, and from what the key is; only a trial says which are
// right (advise.h).
#pragma once

#include <string>
#include <vector>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// The numbers that a text names, as it writes them.
std::vector<std::string> NumbersIn(const std::string& text);

// A number, or a list of numbers, that takes part in a problem: nearest values first, as YAML. `others`: the other
// values that take part. Nothing for values of another type.
std::vector<std::string> CandidatesOf(const YamlNode& tree, const TreePlace& place,
                                      const std::vector<TreePlace>& others, const Diagnostic& problem);

// Whether the key is a size of a grid, of which only few values are possible, so that all of them are told.
bool IsGridSize(const std::string& path);

// Whether a recipe is complete without this key: it has a default, or is optional.
bool MayBeRemoved(const std::string& path);

// Changes of a module of which a rank does not fit its device, in the order in which they are tried.
std::vector<std::vector<Edit>> MemoryCandidates(const YamlNode& tree, const std::string& module, bool state_is_most);

}  // namespace planwright
