// How far off a scaled profile is for the steps of its own probe (docs/measure.md#a-probe).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/wire/records/trace.h"

namespace planwright {

// A step of a recipe that was probed.
struct ProbedStep {
  std::string what;      // "recipe.yaml batch.sequence_length=64"
  double seconds = 0;    // that the probe's measured steps took, the median of them
  double predicted = 0;  // seconds by the scaled profile; 0: it does not tell the speed of the device

  // What the prediction is longer than the step, as a share of the step.
  double off() const { return predicted / seconds - 1; }
};

// The median of what these steps took, by the records of the run. Error, with the file: it cannot be read, or does not
// have all of the steps.
absl::StatusOr<double> MedianStep(const std::string& run_dir, const StepRange& steps);

// Seconds of a step by a profile: those of `plan show RECIPE time` with it, for ranks that are placed as in this plan.
// 0: they are not known.
double PredictedWith(Plan plan, const DeviceProfile& profile);

}  // namespace planwright
