// Where a plan's lines come from, as its recipe's folder sees them.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// Makes the files of all origins relative to the folder of `recipe_file`, so that a plan's bytes do not depend on the
// folder it was compiled in or on how its recipe was named. "<command line>" and unknown places stay.
void RelateOrigins(const std::string& recipe_file, Plan& plan);

// The path, from the working folder on, of a related origin's file.
std::string OriginFromHere(const std::string& recipe_file, const std::string& origin_file);

}  // namespace planwright
