// What the nodes of a job need that is not in the plan: programs, libraries and files, found before the job is
// submitted.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/run/slurm/container_mounts.h"
#include "planner/run/slurm/job_files.h"

namespace planwright {

struct JobNeeds {
  std::vector<NeededFile> files;
  std::vector<std::string> problems;   // what the launch cannot make or write
  std::vector<std::string> of_system;  // libraries of the executor that the system of a node, or an image, must have
  std::vector<std::string> not_found;  // libraries of the executor that the loader does not find on this machine
  // The first and the last TCP port of which the kernel of this machine gives free ones; 0: it does not say. Head,
  // ranks and Gloo or NCCL listen at no others.
  std::pair<int, int> ports;
};

// Of all plans of the job. Files are looked up as the plans name them; links that lead out of a folder are followed.
// The libraries are those that the loader finds with the environment of the job.
JobNeeds NeedsOf(const JobFiles& job);

// OK, or why no rank could load its program: the loader of this machine finds a library of the executor with the
// environment of this shell, and not with that of the job. What it finds in neither, the nodes may have.
absl::Status CheckLibraries(const JobFiles& job, const JobNeeds& needs);

}  // namespace planwright
