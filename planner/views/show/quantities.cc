#include "planner/views/show/quantities.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_format.h"
#include "planner/base/paper/table.h"

namespace planwright {

namespace {

constexpr char kUnknown[] = "unknown";
// Longer numbers say nothing to people, and those of 9e18 and more are no int64_t.
constexpr double kMostHours = 1e15;

}  // namespace

std::string FlopText(double flops) {
  if (!std::isfinite(flops)) return kUnknown;
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  // Beyond exa the number just grows: %.4g then prints an exponent.
  while (flops >= 1000 && unit + 1 < std::size(kUnits)) flops /= 1000, ++unit;
  return absl::StrFormat("%.4g %sFLOP", flops, kUnits[unit]);
}

std::string SecondsText(double seconds) {
  if (!std::isfinite(seconds)) return kUnknown;
  if (seconds >= 1 || seconds == 0) return absl::StrFormat("%.3g s", seconds);
  return seconds >= 1e-3 ? absl::StrFormat("%.3g ms", seconds * 1e3) : absl::StrFormat("%.3g µs", seconds * 1e6);
}

std::string PercentOf(double part, double whole, int digits) {
  const double percent = !std::isfinite(whole) ? whole : whole > 0 ? 100 * part / whole : 0;
  return std::isfinite(percent) ? absl::StrFormat("%.*f %%", digits, percent) : kUnknown;
}

std::string DigitsText(double number, int digits) {
  return std::isfinite(number) ? absl::StrFormat("%.*g", digits, number) : kUnknown;
}

std::string HoursText(double hours) {
  if (!std::isfinite(hours)) return kUnknown;
  if (hours > kMostHours) return "more than " + WithCommas(std::llround(kMostHours));
  return hours < 1000 ? absl::StrFormat("%.4g", hours) : WithCommas(std::llround(hours));
}

std::string LongTimeText(double hours) {
  if (!std::isfinite(hours)) return kUnknown;
  return hours < 1.0 / 60 ? SecondsText(hours * 3600) : HoursText(hours) + " h";
}

std::string BytesText(int64_t bytes) {
  if (bytes < 1000) return absl::StrFormat("%d B", bytes);
  double amount = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  // 999.5 would be printed as 1000.
  while (amount >= 999.5 && unit + 1 < std::size(kUnits)) amount /= 1000, ++unit;
  return absl::StrFormat("%.*f %s", amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0, amount, kUnits[unit]);
}

std::string MemoryUnit::Text(int64_t amount) const {
  return absl::StrFormat("%.2f %s", static_cast<double>(amount) / bytes, name);
}

MemoryUnit MemoryUnitOf(const std::vector<RoleEstimate>& estimates) {
  int64_t most = 0;
  // The device's limit counts too: a small model on a large device is shown in the device's unit.
  for (const RoleEstimate& estimate : estimates) most = std::max({most, estimate.planned.total(), estimate.limit});
  return most >= 1'000'000'000 ? MemoryUnit{"GB", 1e9} : MemoryUnit{"MB", 1e6};
}

}  // namespace planwright
