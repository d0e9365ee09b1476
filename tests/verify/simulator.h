// Judge of rule V3: every rank's program, expanded, run against the others' in a random order of events, with no
// knowledge of roles. It shares no code with the proof: groups expand by MembersOf, bridges by their table, programs by
// unrolling calls.
#pragma once

#include <cstdint>
#include <string>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct Interleaving {
  uint64_t seed = 0;
  // How often, of 100, a communication waits until all earlier ones of its rank are done. 0: what runs beside what is
  // drawn; 100: one at a time, in program order, as on a device with room for one.
  int host_waits = 0;
  int steps = 2;
};

struct Outcome {
  bool completed = false;
  std::string problem;  // first mismatch, or where ranks are stuck
};

// Setup, steps, teardown. Communications of a rank start in program order, each when those before it on its stream are
// done, and some others that are drawn: what the data makes it wait for, whatever that is. A collective is done when
// all members of its subgroup are at it, one after the other on a communicator, of which each group has one for each
// stream; a transfer when both sides have posted it, and messages from one rank to another over one communicator match
// in the order in which they started.
Outcome Simulate(const Plan& plan, const Interleaving& interleaving);

}  // namespace planwright::testing
