// The judge of rule V3: it unrolls the program of every rank and runs all ranks in a random order of events. It knows
// nothing of roles and shares no code with the proof: members of groups come from MembersOf, transfers of bridges from
// the tables, programs from unrolled calls. Definitions are those of docs/progress.md#definitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct Interleaving {
  uint64_t seed = 0;
  // How many of 100 communications wait until all earlier ones of their rank are done. 100: one at a time in program
  // order, as on a device with room for only one. The others wait for a few earlier ones that are drawn.
  int host_waits = 0;
};

struct Outcome {
  bool completed = false;
  std::string problem;  // the first mismatch, or a rank that is stuck
};

// Runs all lists of all ranks, with `steps` steps, in one interleaving after the other, until one is not completed.
// - Communications of a rank start in program order. Each starts when the earlier ones on its stream are done, and some
//   earlier ones on other streams that are drawn at random: they stand for any wait that the data may cause.
// - A collective is done when all members of its subgroup are at it. Each group has a communicator for each stream, and
//   the collectives on one communicator are done one after the other.
// - A transfer is done when both sides have posted it. Messages from one rank to another over one communicator match in
//   the order in which they started.
Outcome Simulate(const Plan& plan, const std::vector<Interleaving>& interleavings, int steps = 2);

}  // namespace planwright::testing
