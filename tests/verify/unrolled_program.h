// A role's program as one flat list for the simulator: the communications, calls unrolled, steps one after the other,
// streams by number.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

// One communication of the unrolled program.
struct Op {
  const Instruction* instruction = nullptr;
  int stream = 0;                     // the same number in all programs
  int group = -1;                     // of a collective
  std::string content;                // what a collective must agree on
  std::vector<std::string> contents;  // of the parts of an exchange
};

struct Program {
  std::vector<Op> ops;
  int streams = 1;
};

// By role. What does not communicate starts and ends by itself and is left out. Throws std::runtime_error for a block
// that does not exist or that calls itself.
std::vector<Program> Unroll(const Plan& plan, int steps);

}  // namespace planwright::testing
