// The files that the data of a plan names.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// As the recipe names them, in its order: shards with their patterns, and paths.
std::vector<std::string> FilesOfData(const DataPlan& data);

}  // namespace planwright
