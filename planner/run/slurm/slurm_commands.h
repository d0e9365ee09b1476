// The programs of Slurm, called without a shell.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// How long Slurm's programs are waited for: they ask its controller, which may be busy or stand still.
inline constexpr std::chrono::seconds kSlurmPatience{60};

// Runs a program of Slurm, from PATH, to its end and returns what it printed on standard output. Unavailable, with what
// it printed on standard error, if it fails; NotFound if there is no such program; DeadlineExceeded if it does not
// answer in time, or within PLANWRIGHT_TIMEOUT_SECONDS if that is less.
absl::StatusOr<std::string> RunSlurm(const std::vector<std::string>& arguments,
                                     std::chrono::milliseconds patience = kSlurmPatience);

// The path of a program of PATH. NotFound if there is none.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// Variables of this shell that sbatch would take before the options of a script: SBATCH_TIMELIMIT and the like. It is
// called without them, as what the recipe says was checked and shown.
std::vector<std::string> SbatchVariables();

// `sbatch` with these arguments and without those variables, as RunSlurm takes it.
std::vector<std::string> SbatchCommand(const std::vector<std::string>& arguments);

// Whether sbatch would take the script: what it says where it would not. OK also where there is no sbatch here.
absl::Status TestScript(const std::string& path);

// A partition of the cluster.
struct Partition {
  std::string name;
  bool is_default = false;
  std::optional<int64_t> most_seconds;  // of a job (MaxTime); nullopt: as long as it likes
  int most_cores = 0;                   // of its nodes; 0: nobody knows
};
// All of the cluster, in the order of sinfo. Errors: those of RunSlurm.
absl::StatusOr<std::vector<Partition>> PartitionsHere();
// Of what `sinfo --exact --format=%P|%l|%c` prints: a line for each partition and kind of node.
std::vector<Partition> ReadPartitions(const std::string& printed);

// Whether srun has the options of pyxis, a plugin, for containers; nullopt: it does not answer here.
std::optional<bool> SrunHasContainers();

// A job of this user that waits or runs with this script, as "12 (PENDING)"; empty: there is none, or Slurm does not
// answer.
std::string JobOfScript(const std::string& path, std::chrono::milliseconds patience = kSlurmPatience);

// Submits a script, and returns the number of its job.
absl::StatusOr<std::string> SubmitScript(const std::string& path);

// Seconds from SIGTERM to SIGKILL where Slurm ends a job (KillWait); 0: Slurm does not say.
double SecondsUntilKilled();

// Asks Slurm to start a job again from the beginning of its script.
absl::Status RequeueJob(const std::string& job);

}  // namespace planwright
