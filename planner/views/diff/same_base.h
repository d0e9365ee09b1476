// What adapters stand on, where a run goes on with another plan: the same weights under another name are no other
// weights (docs/training/adapters.md#checkpoints).
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/views/diff/diff.h"

namespace planwright {

// The digests of what the adapters of the plan stand on when its run goes on: of the sources that it names, as
// BaseDigests has them. Errors: as there, and where sources do not fit the plan.
absl::StatusOr<std::map<std::string, std::string>> BaseToGoOn(const Plan& plan);

// `diff`: of `wrote`, the plan of a checkpoint, and `plan`, which goes on from it. If their sources of weights differ
// in what adapters stand on alone, and that has the same digests, no such change may change the loss. `kept`: the
// digests of the checkpoint (Manifest::base). `found`: BaseToGoOn of `plan`.
void AcceptSameBase(const Plan& wrote, const Plan& plan, const std::map<std::string, std::string>& kept,
                    const std::map<std::string, std::string>& found, PlanDiff& diff);

}  // namespace planwright
