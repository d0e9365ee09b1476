// The table of keys as a JSON schema (draft-07), for editors and for checks without Planwright. A schema sees one file
// and no numbers beside each other: what it lets through `plan validate` may still refuse.
//
// What a file must hold depends on what it is: one with `extends` may leave anything to the files that it builds on,
// one with `name` or `modules` is a whole recipe, and one with neither is a library, of which each model must be whole.
#pragma once

#include "nlohmann/json.hpp"

namespace planwright {

nlohmann::ordered_json RecipeSchema();

}  // namespace planwright
