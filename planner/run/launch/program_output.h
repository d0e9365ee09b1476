// Runs a program to its end, without a shell, for what it prints.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// `arguments`: the program's path first. `environment`: "NAME=value"; without it, that of this program. Returns the
// beginning of what it printed on standard output (kLongestProgramOutput). What it leaves in the background ends with
// it. Unavailable, with what it printed on standard error, if it fails; DeadlineExceeded if it has not ended within
// `patience`, which nullopt does not limit; the errors of Start.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments);
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& environment,
                                     const std::optional<std::chrono::milliseconds>& patience = std::nullopt);

}  // namespace planwright
