// What a person may choose for a run beside its recipe, and whether a run with these choices can begin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/rank_program.h"
#include "planner/wire/records/trace.h"

namespace planwright {

struct RunOptions {
  std::string executor;              // path of the executor program
  std::string run_dir;               // created if it does not exist
  std::string probe_dir;             // empty: no probe
  std::string device;                // "cpu" or "cuda"; empty: as the recipe's `cluster` says
  std::optional<int64_t> steps;      // stop after this many steps; nullopt: run the whole budget
  std::optional<StepRange> profile;  // the steps to profile; nullopt: none
  // What ranks have profiled is summed up and joined to one trace. False: it stays as they wrote it, for whoever reads
  // it, as large traces take long.
  bool joins_traces = true;
  // Folders for the experts that tokens chose: to write to, and to take from instead of choosing. Empty: neither; at
  // most one is set.
  std::string record_routing, replay_routing;
  // A few steps that show whether the plan runs where it is launched (docs/trials.md): nothing is evaluated and nothing
  // is kept. `run_dir` has been prepared for it (planner/run/trial/trial_folder.h).
  bool trial = false;
  // The documents with which the run may go on though it was trained on others (--accept-changes), as DigestOfAll
  // (planner/state/checkpoint/trained_files.h) of what the launcher has compared. Empty: none.
  std::string accepted_data = {};
  double allocated = 0;  // of a trial: when its nodes were there, in seconds since 1970; 0: when its ranks are started
  std::string job = {};  // of Slurm, "4711", whose head launches; empty: none
  // Of a job: seconds from the signal that ends all of it (SIGTERM) to SIGKILL. 0: nobody knows.
  double until_killed = 0;
  // Values of variables that launch.env passes on, where the shell that launched is not the parent of this process (of
  // a job): they are for ranks alone.
  Variables passed_on = {};
  std::string rounds;  // file of communications that ranks time after their steps (communication_rounds.h); empty: none
};

// The steps that the run shall do.
int64_t StepsOf(const Plan& plan, const RunOptions& options);
// Whether it keeps checkpoints, and so has lives.
bool Keeps(const Plan& plan, const RunOptions& options);
// Whether its ranks write a checkpoint when they are asked to stop. An evaluation is a run of no steps, and has nothing
// to keep.
bool Saves(const Plan& plan, const RunOptions& options);
// Whether its ranks compute on GPUs.
bool OnGpus(const Plan& plan, const RunOptions& options);

// NotFound if there is no executor program, InvalidArgument if launch.env passes on what this shell lacks, the run has
// not all the steps to profile or would record choices of a run that goes on, and the errors of the checks of
// routing_folder.h. Call it first, so that a launch that fails leaves no run directory.
absl::Status CheckRun(const Plan& plan, const RunOptions& options);

}  // namespace planwright
