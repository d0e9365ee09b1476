// A measurement goes in parts, one for each plan: the plan is run for a few steps, of which the last ones are traced. A
// part that is done is kept in a folder beside the output until all are: so a measurement that was interrupted goes on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/rank_program.h"
#include "planner/run/launch/rank_starter.h"
#include "planner/run/measure/probed_steps.h"
#include "planner/run/measure/scale_profile.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

struct MeasurePart {
  Plan plan;
  std::string what;  // "recipe.yaml batch.sequence_length=64"
  // Communications are also timed alone, after the steps (plan_rounds.h).
  bool rounds = false;
  // Above 0: experts are not chosen by the router but so that the fullest one of each rank has so many times the mean.
  // Only the products of experts are measured then, against those of the part of the same plan with 1.
  double fullest = 0;
};

struct MeasureOptions {
  std::string output;    // PROFILE.json
  std::string executor;  // path of the executor program
  std::string device;    // "cpu" or "cuda"; empty: as the recipe's `cluster` says
  std::function<void(const std::string& line)> progress;
  // Told before each part that is measured now: how many were, and how many will be. May be empty.
  std::function<void(int64_t done, int64_t all)> begins;
  Variables passed_on = {};        // RunOptions::passed_on
  RankStarter* starter = nullptr;  // through agents on nodes; null: all ranks run on this machine
  // The parts are a probe: the output is this profile, scaled by it. No part counts that was measured before, as that
  // may have been on another device.
  std::optional<ProbedBase> base = {};
};

// How a measurement ended.
struct Measured {
  DeviceProfile profile;  // of all parts; not measured(): a part failed or was interrupted
  std::optional<Outcome> failed;
  std::string failed_part, failed_run;  // `what` of that part, and its run directory, which stays
  std::vector<ProbedStep> probed;       // of a probe: one for each part, as ranks were placed
};

// OUTPUT.parts
std::string PartsFolder(const std::string& output);
// Parts there that are done.
int64_t PartsDone(const std::string& output);

// Measures the parts that are not done, and writes the profile to the output. InvalidArgument: parts that are for
// different devices, were measured on different ones, or run on a GPU that their plan does not name, and what a probe
// cannot scale; other errors are of files and processes of this machine.
absl::StatusOr<Measured> MeasureParts(const std::vector<MeasurePart>& parts, const MeasureOptions& options);

}  // namespace planwright
