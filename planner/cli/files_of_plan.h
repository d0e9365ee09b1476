// The files that a plan names and no index knows: weights to begin with, and recorded batches. Before a rank is started
// it is seen whether they are on this machine, and those that are, are compared with the plan.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/plan/plan.h"

namespace planwright {

struct FileOfPlan {
  enum class Key { kWeights, kSamples };
  Key key = Key::kWeights;
  std::string path;
  std::string named{};  // of weights that are not here: as the recipe has it
  bool here = true;     // it is on this machine
  // Why it does not fit the plan, maybe in several lines: InvalidArgument; DataLoss for a damaged checkpoint; what
  // reading it gives.
  absl::Status problem;
};

// Those that do not fit, and those that are not here; weights first, of which headers are read, and numbers of
// those under the adapters of a checkpoint.
// `weights`: they are looked at, too.
std::vector<FileOfPlan> CompareFiles(const Plan& plan, bool weights);

}  // namespace planwright
