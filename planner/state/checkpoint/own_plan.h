// The plan that lies in a checkpoint: that of the run that wrote it. What plan and manifest both say is compared here,
// for a launch, a rank and `plan checkpoint verify` alike.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/format.h"

namespace planwright {

struct OwnPlan {
  std::optional<Plan> plan;  // none: this release does not read it, so nothing of it is compared
  std::string unread;        // why: "the plan has format_version 3; ..."
};

// The plan of a checkpoint, proved by its digest. DataLoss if it is damaged; Unavailable if it cannot be read. The plan
// has passed ReadPlan, and not the rules of verify.
absl::StatusOr<OwnPlan> ReadOwnPlan(const std::string& folder, const Manifest& manifest);

// DataLoss if the manifest says something else than the plan beside it: name, digests, precision, ranks, sources,
// or how many samples the steps have taken; or if the steps of a first life are not those that it applied and skipped.
absl::Status CheckOwnPlan(const Manifest& manifest, const Plan& plan);

// Both. Messages begin with the path of the file.
absl::StatusOr<OwnPlan> ReadAndCheckOwnPlan(const std::string& folder, const Manifest& manifest);

}  // namespace planwright
