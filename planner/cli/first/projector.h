// What a first recipe has for the projector behind an encoder whose folder has none: the lines `first` of its kind.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Puts what these lines say into `encoder`, with comments that say so. Formulas are over `models`: all models of the
// recipe, by name, with overrides laid over them; `language` is the name of the language model. Keys that overrides
// set, as `asked` has them, are left to them. A number that depends on one that is not there is left out: readers of
// the recipe tell what is missing. FailedPrecondition: a line gives no number that the key may have.
absl::Status ChooseProjector(const YamlNode& models, const YamlNode& asked, const std::string& language,
                             YamlEntry& encoder);

}  // namespace planwright
