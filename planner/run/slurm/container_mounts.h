// What a container of a job sees of its node: the mounts of the recipe, and those that the launcher adds, so that a
// rank finds each file that it needs (docs/jobs.md#containers).
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// A file or folder that the ranks of a job need, or its head or agents.
struct NeededFile {
  std::string what;  // "the executor"
  std::string path;  // absolute, as they open it
  bool writes = false;
  bool made = false;   // it is not there yet: the launch makes it
  bool here = false;   // it is on this machine, or will be when the job is submitted
  std::string seen{};  // how the container sees it; empty without a container, or where it does not
};

struct ContainerMounts {
  // As --container-mounts has them: those of the recipe and those that are added, outer folders first.
  std::vector<std::string> all;
  // Files that no container would see, each with what to write; what no node would start or mount.
  std::vector<std::string> problems;
  std::vector<std::string> notes;  // the image, and mounts of the recipe, that are not on this machine
};

// `needed` gets how each file is seen. A file that is on this machine and under no mount of the recipe is mounted at
// its own path, read-only unless it is written to: its folder as a whole, unless that is one of the system.
ContainerMounts MountsFor(const LaunchPlan& launch, std::vector<NeededFile>& needed);

}  // namespace planwright
