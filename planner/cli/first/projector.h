// What a first recipe has for the projector behind an encoder whose folder has none: the lines `first` of its kind.
#pragma once

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Puts what these lines say into `encoder`, in their order. Both are models of a recipe, as import writes them. A
// number that depends on one that is not there is left out: readers of the recipe tell that its key is missing.
void ChooseProjector(const YamlNode& language, YamlNode& encoder);

}  // namespace planwright
