// Streams and events of one role: a wait names an event that is signalled before it, in program order, and once.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/verify/verify.h"

namespace planwright {

// Of one list of a role, with the blocks it calls: the first that is wrong. A call waits before the first instruction of its block and signals
// after the last.
std::vector<Violation> CheckEvents(const Plan& plan, const Role& role, const std::string& list_name, const std::vector<Instruction>& list);

}  // namespace planwright
