// Paths of recipe files in Plan::origins.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// Makes the files of all origins relative to the folder of `recipe_file`. So the bytes of a plan do not depend on the
// folder in which it was compiled, or on how the recipe was named. "<command line>" and empty files stay.
void MakeOriginsRelative(const std::string& recipe_file, Plan& plan);

// The inverse for one origin: the path of `origin_file` from the working folder.
std::string OriginPathFromHere(const std::string& recipe_file, const std::string& origin_file);

}  // namespace planwright
