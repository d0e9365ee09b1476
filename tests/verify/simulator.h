// Judge of rule V3: every rank's program, expanded, run against the others' in a random order of events, with no knowledge of roles. It
// shares no code with the proof: groups expand by MembersOf, bridges by their table, programs by unrolling calls.
#pragma once

#include <cstdint>
#include <string>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct Interleaving {
  uint64_t seed = 0;
  // How often, of 100, the host waits until an instruction is done before it launches what comes later. 0: all streams of a rank run beside
  // each other as far as events allow; 100: one instruction of a rank at a time, in program order, as on a device with room for one.
  int host_waits = 0;
  int steps = 2;
};

struct Outcome {
  bool completed = false;
  std::string problem;  // first mismatch, or where ranks are stuck
};

// Setup, steps, teardown. A collective is done when all members of its subgroup are at it, one after the other on a communicator, in launch
// order; a transfer when both sides have posted it, and messages from one rank to another over one communicator match in launch order. A
// wait blocks its stream until the event of this step is signalled.
Outcome Simulate(const Plan& plan, const Interleaving& interleaving);

}  // namespace planwright::testing
