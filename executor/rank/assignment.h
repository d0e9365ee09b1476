// The first step in the life of a rank: what it is asked to do, by its command line, its plan and its environment.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "executor/communication/rendezvous.h"
#include "executor/telemetry/start_up.h"
#include "planner/plan/plan.h"
#include "planner/predict/estimate/deadlines.h"
#include "planner/wire/records/trace.h"

namespace planwright::executor {

struct RankOptions {
  std::string plan, run_dir;     // never empty
  int life = 1;                  // of the run directory
  std::optional<int64_t> steps;  // at most so many steps of the plan; 0: only the evaluation before the first
  std::string device;            // "cpu" or "cuda"; empty: the plan says
  std::string probe;             // folder; empty: nothing is probed
  std::string record_routing, replay_routing;  // folders; at most one is not empty
  std::optional<StepRange> profile;            // steps to trace
  std::string rounds;                          // file of communications to time after the steps; empty: none
  std::string accepted_data;                   // RunOptions::accepted_data
  std::string trial;                           // file of TrialFiles: this is a trial; empty: it is none
};

// executor --plan FILE --run-dir DIR [--life N] [--probe DIR] [--steps N] [--trace STEP[-LAST]]
//     [--record-routing DIR | --replay-routing DIR] [--rounds FILE] [--accept-data DIGEST] [--try FILE]
//     [--device cpu|cuda]
// (`executor --devices` alone prints what its ranks can compute on, device.h.)
// InvalidArgument, with the usage, names what cannot be read.
absl::StatusOr<RankOptions> ReadOptions(int argc, const char* const* argv);

struct Assignment {
  RankOptions options;
  Plan plan;
  Environment environment;  // MeetPeers completes it (peers.h)
  int64_t steps = 0;        // of the plan, that are to be done when this life ends
  DeadlineRule deadlines;   // PLANWRIGHT_TIMEOUT_SECONDS replaces those of the plan

  int rank() const { return environment.rank; }
  // Its steps are those that `--steps` says, from wherever it begins. Nothing is evaluated, and nothing is kept.
  bool trial() const { return !options.trial.empty(); }
  bool keeps() const { return plan.checkpoint.every_steps > 0 && !trial(); }  // checkpoints, and so it has lives
  const Role& role() const { return *plan.RoleOf(environment.rank); }
  // "rank 3 on node1: ", for messages.
  std::string self() const;
};

// `prepare`: see RankMainHooks. InvalidArgument if options, plan or environment cannot be used, or do not go together.
absl::StatusOr<Assignment> ReadAssignment(int argc, const char* const* argv,
                                          const std::function<absl::Status(Plan&)>& prepare, StartUp& start_up);

}  // namespace planwright::executor
