// How long each instruction of a program may take before it counts as hung (docs/failures.md#deadlines).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "planner/plan/link/linked_program.h"
#include "planner/plan/plan.h"

namespace planwright {

// In seconds. `first`: until the first step after the start of the rank is done.
struct Deadline {
  double later = std::numeric_limits<double>::infinity(), first = later;
  bool operator==(const Deadline&) const = default;
};

struct DeadlineRule {
  double floor = std::numeric_limits<double>::infinity(), first_step = floor;  // seconds
  double factor = 0;
  double step = 0;     // the estimate of a whole step, in seconds; 0: none
  int64_t rounds = 1;  // of an evaluation of all sets; 1 where nothing is evaluated

  // The deadline of work that is estimated to take so many seconds.
  Deadline Of(double estimate) const;
  // The deadline of what waits for other ranks. No other instruction has a longer one but those of OfScore: none is
  // estimated to take longer than a step.
  Deadline OfWaiting() const { return Of(step); }
  // Behind the last round of an evaluation (the list `score`) a rank that only sends, such as one of an encoder, waits
  // until the others have done all rounds.
  Deadline OfScore() const;
};

// As the plan says (LaunchPlan::predicted_step): the estimate of a step is 0 where the device is unknown. Of a plan of
// an earlier version, which does not say it, goes through all programs.
DeadlineRule DeadlineRuleOf(const Plan& plan);

class Deadlines {
 public:
  Deadlines(const LinkedProgram& program, const DeadlineRule& rule);

  const Deadline& of(const LinkedInstruction& instruction) const { return by_number_[instruction.number]; }

 private:
  std::vector<Deadline> by_number_;  // by LinkedInstruction::number
};

}  // namespace planwright
