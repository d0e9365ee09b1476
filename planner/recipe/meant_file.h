// The file that a name is for that names none.
#pragma once

#include <string>

namespace planwright {

// `models/large.yml` of a recipe in `folder` (empty: the current one): a file of that folder whose name is near, as
// large.yaml is; or the same path in the folders around, in `recipes` of one of them, or of a checkout in one of them.
// As the recipe would name it, from its folder; empty if there is none. `own`: the name of the recipe's own file, which
// it cannot mean.
std::string NearFile(const std::string& folder, const std::string& named, const std::string& own);

}  // namespace planwright
