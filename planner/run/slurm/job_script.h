// The batch script of a run: options for sbatch from the plan, and one fixed line that starts the head. No shell reads
// anything that came from a recipe: every value is a word of plan/slurm_options.h, and all else that the job needs is
// in files.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"

namespace planwright {

struct JobScript {
  std::string program;  // absolute path of `plan`
  std::string run_dir;  // absolute
  // How long before the end of the job's time Slurm tells the head, so that it can save.
  int signal_seconds = 120;
  std::vector<std::string> mounts;  // of the container (container_mounts.h)
  bool trial = false;               // its name ends in "-try", and Slurm does not start it again
};

// InvalidArgument, with the option, its value and what it may be, if a value could mean something else to sbatch.
absl::StatusOr<std::string> RenderJobScript(const Plan& plan, const JobScript& job);

// The arguments of srun that start one agent on each node of a job of `nodes` nodes: "srun", ..., PROGRAM, "agent",
// HEAD_FILE; in the container of the plan, if it has one, with the mounts of the job. InvalidArgument as above, for the
// container.
absl::StatusOr<std::vector<std::string>> AgentStepCommand(const Plan& plan, int nodes, const JobScript& job,
                                                          const std::string& head_file);

// Cores of a node that the job asks for; 0: it has whole nodes.
int CoresOfNode(const Plan& plan);

// Nodes that the ranks of a plan fill.
int NodesOfPlan(const Plan& plan);

}  // namespace planwright
