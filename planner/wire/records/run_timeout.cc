#include "planner/wire/records/run_timeout.h"

#include <cstdlib>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace planwright {

absl::StatusOr<std::optional<std::chrono::milliseconds>> DeadlineOverride() {
  constexpr double kMost = 1e9;  // 30 years; as milliseconds still far from overflow
  const char* seconds = std::getenv(kTimeoutVariable);
  if (seconds == nullptr) return std::nullopt;
  const std::string_view text = seconds;
  double value = 0;
  // SimpleAtod would also read a number between spaces.
  const bool is_number = text.find_first_not_of("0123456789.eE+-") == text.npos && absl::SimpleAtod(seconds, &value);
  if (!is_number || !(value >= 0.001 && value <= kMost)) {
    return absl::InvalidArgumentError(absl::StrCat("PLANWRIGHT_TIMEOUT_SECONDS='", seconds,
                                                   "' is not a number of seconds from 0.001 to 1e9, such as 600"));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(value * 1000));
}

absl::StatusOr<std::chrono::milliseconds> RunTimeout() {
  const absl::StatusOr<std::optional<std::chrono::milliseconds>> given = DeadlineOverride();
  if (!given.ok()) return given.status();
  return given->value_or(std::chrono::seconds(600));
}

}  // namespace planwright
