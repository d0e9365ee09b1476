// The table of keys as a JSON schema (draft-07): for editors, and for checks without Planwright. A schema sees only one
// file and cannot compare numbers, so `plan validate` may refuse a file that the schema accepts.
//
// Which keys are required depends on the file. A file with `extends` may leave any key to the files that it extends. A
// file with `name` or `modules` is a whole recipe. A file with neither is a library: only its models must be complete.
#pragma once

#include "nlohmann/json.hpp"

namespace planwright {

nlohmann::ordered_json RecipeSchema();

}  // namespace planwright
