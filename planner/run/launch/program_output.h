// Runs a program to its end, without a shell, for what it prints.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// `arguments`: the program's path first. `environment`: "NAME=value"; without it, that of this program. Returns the
// beginning of what it printed on standard output (kLongestProgramOutput). Unavailable, with what it printed on
// standard error, if it fails; the errors of Start.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments);
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments,
                                     const std::vector<std::string>& environment);

}  // namespace planwright
