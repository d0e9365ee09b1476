// A role's program as one flat list for the simulator: calls unrolled, steps one after the other, streams and events by number.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

// One instruction of the unrolled program. A call ends with an operation of its own, which signals when its body is done.
struct Op {
  const Instruction* instruction = nullptr;
  int stream = 0;
  std::vector<int> waits, signals;  // event numbers; each step has its own
  int body = -1;                    // of a call's end: index of the first operation of its body
  int group = -1;                   // of a collective
  std::string content;              // what a collective must agree on
  std::vector<std::string> contents;// of the parts of an exchange
};

struct Program {
  std::vector<Op> ops;
  int streams = 1;
};

struct Unrolled {
  std::vector<Program> programs;  // by role
  int events = 0;                 // over all of them
};

// What neither communicates nor has to do with events starts and ends by itself and is left out. Throws std::runtime_error for a block that does
// not exist or that calls itself.
Unrolled Unroll(const Plan& plan, int steps);

}  // namespace planwright::testing
