// Folders of a run: what is in them, and the numbers in names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// Names in a folder. NotFound if there is none; Unavailable if it cannot be read.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder);

// InvalidArgument, with the path and why, unless it is a folder that this user may look into.
absl::Status CheckFolder(const std::string& folder);

// What follows from the name of a checkpoint's folder, "step-00000100.life-1".
struct CheckpointName {
  int64_t step = 0;
  int life = 0;
};
// None: it is not the name of one.
std::optional<CheckpointName> ReadCheckpointName(std::string_view name);

// The number that fills all of `text`; -1 if it is none.
int64_t NumberFrom(std::string_view text);

}  // namespace planwright
