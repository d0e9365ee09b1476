#include "planner/measure/measurements.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planwright {
namespace {

// The value below which a share of the sorted values lies, between two of them by their distance.
double Quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const double rest = at - static_cast<double>(below);
  return rest > 0 ? sorted[below] + rest * (sorted[below + 1] - sorted[below]) : sorted[below];
}

MeasuredTime Together(const MeasuredTime& a, const MeasuredTime& b) {
  const auto of_a = static_cast<double>(a.repetitions), of_b = static_cast<double>(b.repetitions);
  MeasuredTime both = {
      .low = std::min(a.low, b.low), .high = std::max(a.high, b.high), .repetitions = a.repetitions + b.repetitions};
  both.median = std::clamp((of_a * a.median + of_b * b.median) / (of_a + of_b), both.low, both.high);
  return both;
}

auto KeyOf(const MeasuredCompute& point) { return std::tuple(point.kind, point.dtype, point.flops, point.bytes); }
auto KeyOf(const MeasuredCommunication& point) {
  return std::tuple(point.kind, point.members, point.per_node, point.nodes, point.bytes);
}
auto KeyOf(const MeasuredLaunch& point) { return point.kind; }

template <typename Point>
std::vector<Point> MergedPoints(const std::vector<DeviceProfile>& profiles, std::vector<Point> DeviceProfile::*points) {
  std::map<decltype(KeyOf(std::declval<Point>())), Point> merged;
  for (const DeviceProfile& profile : profiles) {
    for (const Point& point : profile.*points) {
      const auto [found, added] = merged.emplace(KeyOf(point), point);
      if (!added) found->second.seconds = Together(found->second.seconds, point.seconds);
    }
  }
  std::vector<Point> list;
  for (auto& [key, point] : merged) list.push_back(std::move(point));
  return list;
}

}  // namespace

void Measurements::Add(const ComputeUse& use, const std::string& sizes, double seconds) {
  if ((use.flops <= 0 && use.bytes <= 0) || seconds <= 0) return;
  Computed& computed = compute_[{use.kind, use.dtype, use.flops, use.bytes}];
  if (computed.seconds.empty()) computed.sizes = sizes;
  computed.seconds.push_back(seconds);
}

void Measurements::Add(const CommunicationUse& use, double seconds) {
  if (use.members < 2 || use.bytes <= 0 || seconds <= 0) return;
  communication_[{use.kind, use.members, use.per_node, use.nodes, use.bytes}].push_back(seconds);
}

void Measurements::AddLaunch(OpKind kind, double seconds) {
  if (seconds > 0) launch_[kind].push_back(seconds);
}

void Measurements::Fill(DeviceProfile& profile) const {
  for (const auto& [key, computed] : compute_) {
    const auto& [kind, dtype, flops, bytes] = key;
    profile.compute.push_back({kind, dtype, flops, bytes, computed.sizes, TimeOf(computed.seconds)});
  }
  for (const auto& [key, seconds] : communication_) {
    const auto& [kind, members, per_node, nodes, bytes] = key;
    profile.communication.push_back({kind, bytes, members, per_node, nodes, TimeOf(seconds)});
  }
  for (const auto& [kind, seconds] : launch_) profile.launch.push_back({kind, TimeOf(seconds)});
}

MeasuredTime TimeOf(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {Quantile(seconds, 0.5), Quantile(seconds, 0.25), Quantile(seconds, 0.75),
          static_cast<int64_t>(seconds.size())};
}

DeviceProfile Merged(const std::vector<DeviceProfile>& profiles) {
  DeviceProfile merged = profiles.front();
  for (const DeviceProfile& profile : profiles) merged.date = std::max(merged.date, profile.date);
  merged.compute = MergedPoints(profiles, &DeviceProfile::compute);
  merged.communication = MergedPoints(profiles, &DeviceProfile::communication);
  merged.launch = MergedPoints(profiles, &DeviceProfile::launch);
  return merged;
}

}  // namespace planwright
