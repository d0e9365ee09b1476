// Reads the passes of a linked program: what its calls of embedding, layers and head do to clocks and memory (pass.h).
#pragma once

#include <string>
#include <vector>

#include "planner/plan/link/linked_program.h"
#include "planner/predict/estimate/instruction_times.h"
#include "planner/predict/simulate/simulate_step.h"
#include "planner/search/pass.h"

namespace planwright {

struct ReadPass {
  std::string frame;  // "language.layers.0"
  bool backward = false;
  Pass pass;
  int64_t out = 0;      // bytes of the values that a forward hands on
  double products = 0;  // seconds that its FLOPs take by themselves, without what is computed again
};

// In program order. A recomputation and the backward behind it are one pass.
std::vector<ReadPass> ReadPasses(const LinkedProgram& program, const InstructionCosts& costs, InstructionTimes& times,
                                 const Rates& rates, HostModel host);

}  // namespace planwright
