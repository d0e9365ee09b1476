// Whether what a trial left is as the plan says (docs/trials.md).
#pragma once

#include <optional>

#include "planner/plan/plan.h"
#include "planner/run/trial/trial_facts.h"
#include "planner/wire/records/run_memory.h"
#include "planner/wire/records/trial_verdict.h"

namespace planwright {

// What the launcher knows beside the files.
struct TrialEnd {
  int exit_code = 0;     // of the ranks
  std::string cause;     // of an exit code that is not 0
  bool on_gpus = false;  // where the ranks were
  // When the nodes were there, and when ranks were started, in seconds since 1970.
  double allocated = 0, begun = 0;
  std::optional<RunMemory> memory;
};

// A step that takes longer than this many times its prediction does not pass, and a communication that takes longer
// than so many times its own: links are measured for a moment, and steps are what is paid for.
inline constexpr double kSlowStep = 1.5, kSlowLink = 3;
// Tensors that hold more than so many times what was planned for them do not pass.
inline constexpr double kMoreMemory = 1.02;

TrialVerdict JudgeTrial(const Plan& plan, const TrialFacts& facts, const TrialEnd& end);

}  // namespace planwright
