#include "planner/run/measure/measurements.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <utility>

#include "planner/predict/rates/measured_rates.h"

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

auto KeyOf(const MeasuredCompute& point) {
  return std::tuple(point.kind, point.dtype, point.flops, point.bytes, point.ranks);
}
auto KeyOf(const MeasuredCommunication& point) {
  return std::tuple(point.kind, point.members, point.per_node, point.nodes, point.bytes);
}
auto KeyOf(const MeasuredLaunch& point) { return std::pair(point.kind, point.ranks); }
auto KeyOf(const MeasuredBeside& point) { return point.kind; }
auto KeyOf(const MeasuredSkew& point) { return std::pair(point.kind, point.fullest); }

MeasuredTime& TimeIn(MeasuredBeside& point) { return point.speed; }
MeasuredTime& TimeIn(MeasuredSkew& point) { return point.factor; }
template <typename Point>
MeasuredTime& TimeIn(Point& point) {
  return point.seconds;
}

// Both have the same key.
template <typename Point>
void Join(const Point& point, Point& into) {
  Point other = point;
  if constexpr (std::is_same_v<Point, MeasuredCommunication>) {
    const bool in_step = point.scaled == 0, known_in_step = into.scaled == 0;
    if (in_step && !known_in_step) into = point;
    if (in_step != known_in_step) return;
  }
  TimeIn(into) = Together(TimeIn(into), TimeIn(other));
}

template <typename Point>
std::vector<Point> MergedPoints(const std::vector<DeviceProfile>& profiles, std::vector<Point> DeviceProfile::*points) {
  std::map<decltype(KeyOf(std::declval<Point>())), Point> merged;
  for (const DeviceProfile& profile : profiles) {
    for (const Point& point : profile.*points) {
      const auto [found, added] = merged.emplace(KeyOf(point), point);
      if (!added) Join(point, found->second);
    }
  }
  std::vector<Point> list;
  for (auto& [key, point] : merged) list.push_back(std::move(point));
  return list;
}

// What communications took in steps, against what they took alone, by their bytes. A small message may be twice as long
// in a step, as its latency is; that says nothing of a large one.
class InSteps {
 public:
  void Add(double bytes, double ratio) { ratios_[bytes].push_back(ratio); }
  bool empty() const { return ratios_.empty(); }

  // On a line between the two sizes around this one, on a logarithmic scale; beyond all sizes that of the nearest one.
  double At(double bytes) const {
    const auto above = ratios_.lower_bound(bytes);
    if (above == ratios_.end()) return Of(*ratios_.rbegin());
    if (above == ratios_.begin()) return Of(*above);
    const auto below = std::prev(above);
    const double share = std::log(bytes / below->first) / std::log(above->first / below->first);
    return (1 - share) * Of(*below) + share * Of(*above);
  }
  // The median of those that have about this size, or else of all.
  double Around(double bytes) const {
    constexpr double kAbout = 4;
    std::vector<double> near, all;
    for (const auto& [size, ratios] : ratios_) {
      all.insert(all.end(), ratios.begin(), ratios.end());
      if (size < bytes * kAbout && bytes < size * kAbout) near.insert(near.end(), ratios.begin(), ratios.end());
    }
    return TimeOf(near.empty() ? all : near).median;
  }

 private:
  static double Of(const std::pair<const double, std::vector<double>>& size) { return TimeOf(size.second).median; }

  std::map<double, std::vector<double>> ratios_;
};

// Where counts told what rows take longer in steps, those count, and not the rows of a part that had no counts.
void LeaveOutUntold(std::vector<MeasuredCommunication>& points) {
  const auto group_of = [](const MeasuredCommunication& point) {
    return std::tuple(point.kind, point.members, point.per_node, point.nodes);
  };
  const auto told = [](const MeasuredCommunication& point) { return point.scaled != 1; };
  std::set<std::tuple<OpKind, int, int, int>> groups;
  for (const MeasuredCommunication& point : points) {
    if (HasRowsOfItsOwn(point.kind) && told(point)) groups.insert(group_of(point));
  }
  std::erase_if(points, [&](const auto& point) { return !told(point) && groups.contains(group_of(point)); });
}

}  // namespace

void Measurements::Add(double seconds, const Beside& beside, Times& times) {
  // What ran beside something for a moment says nothing about how slow it was then.
  constexpr double kMoment = 0.02;
  if (beside.any <= kMoment * seconds) return times.undisturbed.Add(seconds);
  times.slowed.push_back({seconds, beside});
}

void Measurements::Add(const ComputeUse& use, const std::string& sizes, double seconds, const Beside& beside) {
  if ((use.flops <= 0 && use.bytes <= 0) || seconds <= 0) return;
  Times& times = compute_[{use.kind, use.dtype, use.flops, use.bytes}];
  if (times.sizes.empty()) times.sizes = sizes;
  Add(seconds, beside, times);
}

void Measurements::Add(const CommunicationUse& use, double seconds, const Beside& beside) {
  if (use.members < 2 || use.bytes <= 0 || seconds <= 0) return;
  Add(seconds, beside, communication_[{use.kind, use.members, use.per_node, use.nodes, use.bytes}]);
}

void Measurements::AddAlone(const CommunicationUse& use, double seconds) {
  if (use.members < 2 || use.bytes <= 0 || seconds <= 0) return;
  alone_[{use.kind, use.members, use.per_node, use.nodes, use.bytes}].push_back(seconds);
}

void Measurements::AddLaunch(OpKind kind, double seconds) {
  if (seconds > 0) launch_[kind].Add(seconds);
}

void Measurements::AddSkew(OpKind kind, double fullest, double factor) {
  if (factor > 0) skew_[{kind, fullest}].push_back(factor);
}

void Measurements::EndStep() {
  for (auto& [key, times] : compute_) times.undisturbed.EndStep();
  for (auto& [key, times] : communication_) times.undisturbed.EndStep();
  for (auto& [kind, means] : launch_) means.EndStep();
}

void Measurements::Fill(DeviceProfile& profile) const {
  const auto time_of = [](const Times& times) {
    std::vector<double> seconds = times.undisturbed.of_steps;
    if (seconds.empty()) {
      for (const Slowed& slowed : times.slowed) seconds.push_back(slowed.seconds);
    }
    return TimeOf(std::move(seconds));
  };
  for (const auto& [key, times] : compute_) {
    const auto& [kind, dtype, flops, bytes] = key;
    profile.compute.push_back({kind, dtype, flops, bytes, times.sizes, time_of(times), ranks_});
  }
  for (const auto& [key, times] : communication_) {
    const auto& [kind, members, per_node, nodes, bytes] = key;
    profile.communication.push_back({kind, bytes, members, per_node, nodes, time_of(times)});
  }
  for (const auto& [kind, means] : launch_) profile.launch.push_back({kind, TimeOf(means.of_steps), ranks_});
  for (const auto& [key, factors] : skew_) profile.skew.push_back({key.first, key.second, TimeOf(factors)});
  FillBeside(profile);
  FillAlone(profile);
}

// While it ran beside the other sort it did what is missing of its undisturbed time.
void Measurements::FillBeside(DeviceProfile& profile) const {
  // A clock cannot tell apart less than this, and a simulation must come to an end.
  constexpr double kLeastSpeed = 0.01;
  std::map<OpKind, std::vector<double>> speeds;
  const auto add = [&](OpKind kind, const Times& times) {
    if (times.undisturbed.of_steps.empty()) return;
    const double alone = TimeOf(times.undisturbed.of_steps).median;
    for (const Slowed& slowed : times.slowed) {
      if (slowed.beside.earlier < 0.2 * slowed.seconds) continue;
      const double done = alone - (slowed.seconds - slowed.beside.earlier);
      speeds[kind].push_back(std::clamp(done / slowed.beside.earlier, kLeastSpeed, 1.0));
    }
  };
  for (const auto& [key, times] : compute_) add(std::get<OpKind>(key), times);
  for (const auto& [key, times] : communication_) add(std::get<OpKind>(key), times);
  for (const auto& [kind, of] : speeds) profile.beside.push_back({kind, TimeOf(of)});
}

// What was timed alone has other surroundings than in a step: it is multiplied by what steps took at the same sizes,
// against that. Where steps do not have such groups, by what that is for others of its nodes, or for all.
void Measurements::FillAlone(DeviceProfile& profile) const {
  DeviceProfile of_alone;
  for (const auto& [key, seconds] : alone_) {
    const auto& [kind, members, per_node, nodes, bytes] = key;
    of_alone.communication.push_back({kind, bytes, members, per_node, nodes, TimeOf(seconds)});
  }
  const MeasuredRates alone(of_alone);
  std::map<std::tuple<OpKind, int, int, int>, InSteps> by_group;
  std::map<bool, InSteps> by_distance;  // whether a group is on several nodes
  // By members, those of a node, and nodes: how many seconds an all_to_all takes longer in steps than alone.
  std::map<std::tuple<int, int, int>, std::vector<double>> longer;
  InSteps all;
  std::set<OpKind> in_steps;
  for (const MeasuredCommunication& point : profile.communication) {
    in_steps.insert(point.kind);
    const auto found = alone.Communication({point.kind, point.bytes, point.members, point.per_node, point.nodes});
    if (!found || found->known == Known::kEstimated) continue;  // beyond what was timed alone
    const double ratio = point.seconds.median / found->seconds;
    by_group[{point.kind, point.members, point.per_node, point.nodes}].Add(point.bytes, ratio);
    by_distance[point.nodes > 1].Add(point.bytes, ratio);
    all.Add(point.bytes, ratio);
    if (point.kind == OpKind::kAllToAll)
      longer[{point.members, point.per_node, point.nodes}].push_back(point.seconds.median - found->seconds);
  }
  std::map<CommunicationKey, MeasuredCommunication> points;
  for (const MeasuredCommunication& point : profile.communication)
    points[{point.kind, point.members, point.per_node, point.nodes, point.bytes}] = point;
  for (MeasuredCommunication point : of_alone.communication) {
    const auto group = by_group.find({point.kind, point.members, point.per_node, point.nodes});
    const auto distance = by_distance.find(point.nodes > 1);
    // Rows that nobody counted are left out of steps. But the counts that go before them, in an all_to_all, are
    // messages between the same ranks: what these take longer than alone is not their bytes, and rows take that much
    // longer too.
    const bool left_out = HasRowsOfItsOwn(point.kind) && !in_steps.contains(point.kind);
    const auto counts = longer.find({point.members, point.per_node, point.nodes});
    const double alone_seconds = point.seconds.median;
    const double as_counts =
        counts == longer.end() ? 1 : std::max(0.1, 1 + TimeOf(counts->second).median / alone_seconds);
    point.scaled = left_out                        ? as_counts
                   : group != by_group.end()       ? group->second.At(point.bytes)
                   : distance != by_distance.end() ? distance->second.Around(point.bytes)
                   : all.empty()                   ? 1
                                                   : all.Around(point.bytes);
    point.seconds.median *= point.scaled, point.seconds.low *= point.scaled, point.seconds.high *= point.scaled;
    points.emplace(CommunicationKey(point.kind, point.members, point.per_node, point.nodes, point.bytes), point);
  }
  profile.communication.clear();
  for (auto& [key, point] : points) profile.communication.push_back(point);
}

bool HasRowsOfItsOwn(OpKind kind) {
  return kind == OpKind::kAllToAllV || kind == OpKind::kAllGatherV || kind == OpKind::kReduceScatterV;
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
  LeaveOutUntold(merged.communication);
  merged.launch = MergedPoints(profiles, &DeviceProfile::launch);
  merged.beside = MergedPoints(profiles, &DeviceProfile::beside);
  merged.skew = MergedPoints(profiles, &DeviceProfile::skew);
  return merged;
}

}  // namespace planwright
