#include "planner/base/files/readable.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace planwright {
namespace {

// 12.43 -> "12.4"
std::string ThreeDigits(double number) {
  const double size = std::abs(number);
  return absl::StrFormat("%.*f", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, number);
}

}  // namespace

std::string DurationText(double seconds) {
  if (!(seconds > 0)) return "0 s";
  if (seconds < 0.995e-3) return "under 1 ms";
  if (seconds < 0.09995) return ThreeDigits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return ThreeDigits(seconds) + " s";
  if (seconds > 1e15) return "for ever";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  if (whole < 86400) return absl::StrFormat("%d h %02d min", whole / 3600, whole % 3600 / 60);
  return absl::StrFormat("%d d %02d h", whole / 86400, whole % 86400 / 3600);
}

std::string ClockText(absl::Time time) { return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone()); }

std::string UtcText(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()); }

std::string LargeText(double number) {
  constexpr struct {
    double one;
    const char* name;
  } kUnits[] = {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {1e3, " thousand"}};
  for (const auto& unit : kUnits) {
    if (std::abs(number) >= 0.9995 * unit.one) return ThreeDigits(number / unit.one) + unit.name;
  }
  return std::floor(number) == number ? absl::StrFormat("%.0f", number) : ThreeDigits(number);
}

}  // namespace planwright
