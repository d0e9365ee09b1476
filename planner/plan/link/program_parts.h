// What of the model or the step an instruction belongs to, as people ask where the time of a step goes.
#pragma once

#include <string>

#include "planner/plan/link/linked_program.h"

namespace planwright {

// A block of a layer is a part of its own, and its backward belongs to the same: the part "language.mamba" is
// everything in "language.mamba.forward" and in "language.mamba.backward". What stands beside the calls of such blocks
// reads samples ("data"), steps weights ("optimizer"), or passes values between modules and stages ("transfers").
std::string PartOf(const LinkedProgram& program, const LinkedEntry& entry);

}  // namespace planwright
