// A plan as a tree of all that its digest covers, fields with their default value too: what two plans are compared by.
#pragma once

#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"

namespace planwright {

nlohmann::ordered_json FieldTree(const Plan& plan);

}  // namespace planwright
