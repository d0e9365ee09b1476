// The points in a program at which --probe keeps values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/plan/link/linked_program.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

// A point in the list of the step; of a run of no steps, in that of a round.
struct ProbePoint {
  size_t entry = 0;
  bool after = false;  // false: before the entry runs (an input of a call); true: after it (an output)
  uint32_t call = 0;
  const Probe* probe = nullptr;
  int value = 0;
};

// In the order of the list. Links each probe of a block to the entries that make its value, in every call of the block
// within the list. Blocks of an evaluation state no probes: they make values of their forwards under the same names,
// and of these the logits. `trains`: the run has steps.
std::vector<ProbePoint> FindProbePoints(const Plan& plan, const LinkedProgram& program, bool trains);

}  // namespace planwright::executor
