// Programs of roles for the simulator: one flat list of communications, with calls unrolled, steps one after the other,
// and streams as numbers.
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
  std::string content;                // of a collective: what all members must agree on
  std::vector<std::string> contents;  // of an exchange: for each part, what both ends must agree on
};

struct Program {
  std::vector<Op> ops;
  int streams = 1;
};

// The programs of all roles, with `steps` steps. Instructions that do not communicate are left out: they never wait for
// another rank. Throws std::runtime_error for a block that does not exist or that calls itself.
std::vector<Program> Unroll(const Plan& plan, int steps);

}  // namespace planwright::testing
