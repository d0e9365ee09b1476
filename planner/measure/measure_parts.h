// A measurement goes in parts, one for each plan: the plan is run on this machine for a few steps, of which the last
// ones are traced. A part that is done is kept in a folder beside the output until all are: so a measurement that was
// interrupted goes on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run_files/outcome.h"

namespace planwright {

struct MeasurePart {
  Plan plan;
  std::string what;  // "recipe.yaml batch.sequence_length=64"
};

struct MeasureOptions {
  std::string output;    // PROFILE.json
  std::string executor;  // path of the executor program
  std::string device;    // "cpu" or "cuda"; empty: as the recipe's `cluster` says
  std::function<void(const std::string& line)> progress;
};

// How a measurement ended.
struct Measured {
  DeviceProfile profile;  // of all parts; not measured(): a part failed or was interrupted
  std::optional<Outcome> failed;
  std::string failed_part, failed_run;  // `what` of that part, and its run directory, which stays
};

// A part that took longer than this is ended, and is an error.
inline constexpr int kLongestPartSeconds = 8 * 60;

// OUTPUT.parts
std::string PartsFolder(const std::string& output);

// Measures the parts that are not done, and writes the profile to the output. InvalidArgument: parts that are for
// different devices, were measured on different ones, or run on a GPU that their plan does not name; other errors are
// of files and processes of this machine.
absl::StatusOr<Measured> MeasureParts(const std::vector<MeasurePart>& parts, const MeasureOptions& options);

}  // namespace planwright
