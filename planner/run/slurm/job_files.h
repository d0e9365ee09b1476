// RUN/job: what a job needs to know, written when it is submitted and read when it runs.
//   plan.json, fallback-N.json  the plans, as they were proved; of a measurement, part-N.json
//   launch.json                 the options of the launch and its environment; only its owner can read it
//   job.sbatch                  what sbatch gets
//   number, outcome.json        the job, and how it ended where no life began (submitted_job.h)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/rank_program.h"
#include "planner/run/launch/run_options.h"

namespace planwright {

// A measurement instead of a run (planner/run/measure/measure_parts.h): its parts are `plans`.
struct MeasureJob {
  struct Part {
    std::string what;
    bool rounds = false;
    double fullest = 0;
  };
  std::string output;       // PROFILE.json, absolute
  std::vector<Part> parts;  // as JobFiles::plans
};

struct JobFiles {
  std::vector<Plan> plans;  // the plan, and those to fall back to; or those to measure
  RunOptions options;
  std::optional<MeasureJob> measure;
  // What the head, srun and the agents have beside what Slurm and the nodes give them: VariablesOfShell. Those of
  // launch.env are for ranks alone: others would hear NCCL_*, SRUN_* and the like, too. What the shell gives them is in
  // `options`.
  Variables environment;
  std::vector<std::string> mounts;  // of the container, all of them (container_mounts.h)
  std::string program;              // absolute path of `plan`
  std::string folder;  // in which it runs: that of the submission; with a container the run directory, which it sees
};

// The text of launch.json.
std::string LaunchJson(const JobFiles& job);
// Errors of writing and reading: Unavailable with the path; InvalidArgument if a file holds something else.
absl::Status WriteJobFiles(const JobFiles& job, const std::string& script);
absl::StatusOr<JobFiles> ReadJobFiles(const std::string& run_dir);

// The first one that needs the most nodes: the job is for it.
const Plan& LargestPlan(const std::vector<Plan>& plans);

inline std::string JobScriptPath(const std::string& run_dir) { return run_dir + "/job/job.sbatch"; }

}  // namespace planwright
