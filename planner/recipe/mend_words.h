// Unknown keys that are right but elsewhere: keys of another level, and words of other programs (field_words.h).
#pragma once

#include <functional>
#include <set>
#include <string>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Tells each (PW0101) with the key that it is here and the value in that key's unit, and puts it there. If the same
// file has that key too, the word is only removed. Over a key of a file that it extends the recipe's word wins. Other
// unknown keys are left for the checks of keys. Returns the paths of keys that the recipe has only by a word whose
// value cannot be converted: that they are missing is told.
std::set<std::string, std::less<>> MendWords(YamlNode& recipe, Diagnostics& problems);

}  // namespace planwright
