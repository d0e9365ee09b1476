// V4 of instructions that read samples: what they make has the types that their contract says (ops.def), for the lane's
// samples.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// What is wrong with the outputs of a read of `module`, or "".
std::string ReadProblem(const Plan& plan, const Module& module, const Instruction& read);

}  // namespace planwright
