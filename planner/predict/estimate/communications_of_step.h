// What the steps of a plan communicate, of each class of ranks once.
#pragma once

#include <functional>

#include "planner/plan/instruction.h"
#include "planner/plan/plan.h"
#include "planner/predict/rates/uses.h"

namespace planwright {

// Calls `visit` with each communication of a step of two ranks or more and one byte or more, at mean sizes: the
// instruction, and what it is a use of.
void ForEachCommunication(const Plan& plan,
                          const std::function<void(const Instruction&, const CommunicationUse&)>& visit);

}  // namespace planwright
