// One part of a measurement: its run, and the profile that is kept of it until all parts are done.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/measure/measure_parts.h"

namespace planwright {

// The plan as its ranks are placed: on one node, if all of them run on this machine. Without a profile, as sizes are
// asked for, not times.
Plan Placed(Plan plan, const MeasureOptions& options);

// The recipe's word for what the plan's ranks run on with these options.
std::string GpuOf(const Plan& plan, const MeasureOptions& options);

// The part's profile, if an earlier call has measured it on a machine like this one with this program.
std::optional<DeviceProfile> DoneBefore(const MeasureOptions& options, const MeasurePart& part);

// Runs a part and writes its profile beside its run directory, which is removed then. Of a part that failed, the
// outcome is in `measured`, and of a probe, what its steps took. `signal`: that came when it had run. Errors: those of
// MeasureParts.
absl::StatusOr<DeviceProfile> MeasureOne(const MeasurePart& part, const MeasureOptions& options, Measured& measured,
                                         int& signal);

}  // namespace planwright
