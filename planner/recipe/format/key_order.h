// The order of keys in a recipe's one form.
#pragma once

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Puts the keys of all maps in the order of the table of keys, with their comments. A key that it does not have stays
// after the one before it, and names that the author chose stay in their order. Values of several lines stay as they
// are written.
void OrderKeys(YamlNode& tree);

}  // namespace planwright
