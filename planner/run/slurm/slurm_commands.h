// The programs of Slurm, called without a shell.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// Runs a program of PATH to its end and returns what it printed on standard output. Unavailable, with what it printed
// on standard error, if it fails; NotFound if there is no such program.
absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& arguments);

// The path of a program of PATH. NotFound if there is none.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// Variables of this shell that sbatch would take before the options of a script: SBATCH_TIMELIMIT and the like. It is
// called without them, as what the recipe says was checked and shown.
std::vector<std::string> SbatchVariables();

// `sbatch` with these arguments and without those variables, as RunProgram takes it.
std::vector<std::string> SbatchCommand(const std::vector<std::string>& arguments);

// Whether sbatch would take the script: what it says where it would not. OK also where there is no sbatch here.
absl::Status TestScript(const std::string& path);

// The partitions of the cluster, in the order of sinfo; none if it does not answer.
std::vector<std::string> PartitionsHere();

// A job of this user that waits or runs with this script, as "12 (PENDING)"; empty: there is none, or Slurm does not
// answer.
std::string JobOfScript(const std::string& path);

// Submits a script, and returns the number of its job.
absl::StatusOr<std::string> SubmitScript(const std::string& path);

// Seconds from SIGTERM to SIGKILL where Slurm ends a job (KillWait); 0: Slurm does not say.
double SecondsUntilKilled();

// Asks Slurm to start a job again from the beginning of its script.
absl::Status RequeueJob(const std::string& job);

}  // namespace planwright
