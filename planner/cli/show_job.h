// What `--slurm --dry-run` shows: all that would be submitted and would run, and what that needs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "planner/cli/needs_of_job.h"
#include "planner/run/slurm/job_files.h"

namespace planwright {

struct ShownJob {
  std::string script;             // of RenderJobScript
  std::vector<std::string> srun;  // of AgentStepCommand; the job's number is not known yet
  JobNeeds needs;
  std::vector<std::string> left_behind;  // names of variables of this shell that libraries read and no rank gets
  std::vector<std::string> problems;     // for which the job would not be submitted
  std::string sbatch;  // what `sbatch --test-only` says against it; empty: nothing, or it was not asked
  bool slurm_answers = false;
};

// Values of variables that launch.env passes on are not shown: they may be secrets.
std::string JobText(const JobFiles& job, const ShownJob& shown, size_t width);
nlohmann::ordered_json JobJson(const JobFiles& job, const ShownJob& shown);

}  // namespace planwright
