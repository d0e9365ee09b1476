// An instruction and its recipe line as text, for the recorder, logs and errors.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright::executor {

// "all_gather n -> n_full over language.tp"
std::string InstructionText(const Instruction& instruction);

// The recipe line of an index in Plan::origins: "recipes/toy.yaml:12 (module language)". Empty for -1.
std::string OriginText(const Plan& plan, int origin);

}  // namespace planwright::executor
