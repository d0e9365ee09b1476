// The folder of `--record-routing` and `--replay-routing` (docs/model/mixture_of_experts.md#replay). The ranks write
// and read the choices. The launcher checks before a run that it may record there, or that the choices there fit the
// plan.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "planner/plan/plan.h"

namespace planwright {

// The messages of all errors are for the user. Checks write nothing.

// InvalidArgument if no module of the plan has experts, or `folder` is something else than a folder. AlreadyExists if
// choices, or the claim of another run, are there. A folder that does not exist is good.
absl::Status CheckRecordRouting(const Plan& plan, const std::string& folder);

// Whether a run of `steps` steps can make the choices of `folder`. InvalidArgument if no module of the plan has
// experts, or if the choices are those of other tokens, layers or experts, or of fewer steps: one message names every
// difference. NotFound if the folder does not exist or holds no choices. FailedPrecondition if the run that recorded
// them did not come to its end, or a file is not as that run left it. Unavailable if routing.json cannot be read.
// `option`: that which names the folder.
absl::Status CheckReplayRouting(const Plan& plan, int64_t steps, const std::string& folder,
                                const char* option = "--replay-routing");

// For a life of a run: makes the folder and a routing.json in it that has the identity of the run and no more. If
// several runs try at once, one succeeds. A later life of the run finds its claim. `goes_on`: the life goes on from a
// checkpoint, so that choices of the steps before it must be there. AlreadyExists: another run has claimed the folder.
// FailedPrecondition: the claim of the earlier lives is gone. ResourceExhausted or Unavailable if a file cannot be made
// or read.
absl::Status ClaimRoutingFolder(const std::string& folder, const std::string& run_id, bool goes_on);

// Replaces routing.json by what the choices of a run of `steps` steps belong to. Call it when the run has ended well.
// Unavailable if it cannot be written.
absl::Status FinishRoutingFolder(const Plan& plan, int64_t steps, const std::string& folder);

}  // namespace planwright
