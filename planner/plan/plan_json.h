// The plan's file: canonical JSON. The same plan gives the same bytes anywhere; one instruction, parameter or storage a
// line, so that text diffs read well. Fields with their default value are left out where plan_fields.h says so.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"

namespace planwright {

// Ends with a newline. Writes plan.digest as it stands: set it with PlanDigest first.
std::string WritePlan(const Plan& plan);

// Strict: unknown, repeated, missing or mistyped fields, an unreadable format_version and a digest that does not match
// the contents, more bytes or levels than limits.h allows are InvalidArgument errors that name the place
// ("modules[1].parameters[3].shape: ...").
absl::StatusOr<Plan> ReadPlan(std::string_view text);

// SHA-256, in hex, over the canonical JSON of what ranks do: without origins, tool version, recipe digest, the digest
// itself and the `base` folders of paths.
std::string PlanDigest(const Plan& plan);

}  // namespace planwright
