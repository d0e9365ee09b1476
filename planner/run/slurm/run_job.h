// What a batch script runs, on the first node of its job: the head of the run. It starts an agent on each node, runs
// the plan through them, and has the job started again when its time is over before the run is.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/run/launch/launch_life.h"
#include "planner/run/slurm/job_files.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

struct EndedJob {
  Outcome outcome;
  JobFiles job;             // its run directory is that of this task
  std::string task;         // of a job array; empty: it is none
  bool comes_back = false;  // it waits in the queue again, or another job follows
};

// `run_dir` is that of WriteJobFiles. In a job array each task has a run of its own, in RUN/array-N. An outcome of
// kExitPreempted means that the job was put into the queue again, or that Slurm does so. Errors are those of the job's
// files, of srun, and of LaunchRun.
absl::StatusOr<EndedJob> RunJob(const std::string& run_dir, const Terminal& terminal);

}  // namespace planwright
