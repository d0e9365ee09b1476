// An instruction and its place in words, for the recorder, logs and errors.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright::executor {

// "all_gather n -> n_full over language.tp"
std::string InstructionText(const Instruction& instruction);

// "recipes/toy.yaml:12 (module language)"; empty for -1.
std::string OriginText(const Plan& plan, int origin);

}  // namespace planwright::executor
