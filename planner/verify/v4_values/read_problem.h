// V4 of instructions that read samples: each value that they make has the type that its contract in ops.def gives it,
// for the samples of this rank's lane (docs/training/data.md#lanes). What the values mean is V5's (verify_meanings.cc),
// and how long run-time sizes may be V10's (verify_run_time_sizes.cc).
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// What is wrong with the outputs of an instruction that reads samples of `module`, or "".
std::string ReadProblem(const Plan& plan, const Module& module, const Instruction& read);

}  // namespace planwright
