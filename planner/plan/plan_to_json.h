// The plan as the JSON tree that its file holds, for programs that print parts of it.
#pragma once

#include "nlohmann/json_fwd.hpp"
#include "planner/plan/plan.h"

namespace planwright {

nlohmann::ordered_json PlanToJson(const Plan& plan);

}  // namespace planwright
