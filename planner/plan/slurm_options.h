// What the options of `launch.slurm` may be: words that mean only themselves to a shell, to sbatch and to srun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/plan/plan.h"

namespace planwright {

// Why a value cannot be that option; empty if it can. The options: partition, account, qos, constraint, time,
// reservation, gres, container, mounts (each of them).
std::string SlurmOptionProblem(std::string_view option, std::string_view value);

// The same of a word that has letters, digits, . _ - + : @ % and the characters of `more`, and does not begin with -.
std::string SlurmWordProblem(std::string_view value, std::string_view more);

// The seconds of a value of `time`, as sbatch reads it; 0 is no limit. None: it is not a time.
std::optional<int64_t> SlurmSeconds(std::string_view time);

// Why a value of `gres` that is of the right characters does not fit ranks on `gpus` GPUs of each node (0: on CPUs),
// and what to write; all empty if it fits.
struct GresProblem {
  std::string what, help;
  std::string value{};  // of gres that would fit; empty: there is none
};
GresProblem GresProblemOf(std::string_view gres, int64_t gpus);
// Whether a value of `gres` says how many GPUs a node gives, or that nobody counts them.
bool GresNamesGpus(std::string_view gres);

// The first problem of all options that are given: "launch.slurm.time is `4h`; ..."; empty without one.
// `on_gpus`: of the ranks.
std::string SlurmOptionsProblem(const LaunchPlan& launch, bool on_gpus);

}  // namespace planwright
