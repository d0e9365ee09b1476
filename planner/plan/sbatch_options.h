// `launch.slurm.options`: options of sbatch that have no key of their own. Those that a job gets from the plan are not
// among them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planwright {

struct SbatchProblem {
  std::string what, help;  // "`--nodes=4`: the ranks of ..."; both empty: there is none
  bool taken = false;      // the plan gives this option; false: it is no option in full
};

// What is wrong with one option, such as "--exclude=n17". `on_gpus`: the ranks compute on GPUs, so that their jobs
// have whole nodes.
SbatchProblem SbatchOptionProblem(std::string_view option, bool on_gpus);

// "--exclude" of "--exclude=n17".
std::string_view SbatchOptionName(std::string_view option);

// The first problem of a list, with one that is there twice; empty without one.
std::string SbatchOptionsProblem(const std::vector<std::string>& options, bool on_gpus);

}  // namespace planwright
