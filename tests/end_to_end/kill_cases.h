// The cases of the kill matrix: every role x phase of a run x fault x moment, with instructions taken from the plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

// What a rank is doing. `data`: reading samples. `bridge`: rows and their gradients cross to the other module.
// `reduce`: gradients, sums and weights, over ranks. `snapshot`: the state is copied; `write` and `publish` are the
// thread that writes. `load`: a checkpoint is loaded.
std::vector<std::string> KillPhases();
std::vector<std::string> KillFaults();  // those of matrix_executor.cc

struct KillCase {
  std::string role, phase, fault, moment;
  int rank = 0;
  // The fail point (executor/base/fail_point.h), and the kind of its instruction; empty: none.
  std::string list, kind;
  int64_t step = 1, number = -1;
  bool resumes = false;  // one of each role and phase: afterwards the run is resumed to its end

  // "radio_encoder.s0 reduce SIGKILL before (rank 1, step 3, 812 all_reduce)"
  std::string Name() const;
};

// All cases, in an order that depends on the plan alone. Each instruction kind of a phase has its turn.
std::vector<KillCase> KillCases(const Plan& plan);

// `count` cases, drawn with a fixed seed, so that phases, faults, moments and roles are as even as can be. Each phase
// has a case that resumes.
std::vector<KillCase> SampleOf(std::vector<KillCase> cases, size_t count);

}  // namespace planwright::testing
