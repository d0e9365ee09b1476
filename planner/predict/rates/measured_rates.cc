#include "planner/predict/rates/measured_rates.h"

#include <algorithm>
#include <cmath>

namespace planwright {
namespace {

// Sizes are sums of products of whole numbers, and means of them: equal ones may differ in their last digits.
bool SameSize(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(a, b); }

// Whether `a` ranks are more like `ranks` than `b` are.
bool Nearer(int a, int b, int ranks) {
  const auto distance = [&](int number) { return std::abs(std::log(static_cast<double>(number) / ranks)); };
  return distance(a) < distance(b) || (distance(a) == distance(b) && a > b);
}

// By another number of ranks: how much slower a use is with `ranks` of them, as the median over those that both have.
std::map<int, double> SlowerThan(const DeviceProfile& profile, int ranks) {
  std::map<std::tuple<OpKind, DType, double, double>, double> own;
  for (const MeasuredCompute& point : profile.compute) {
    if (point.ranks == ranks) own[{point.kind, point.dtype, point.flops, point.bytes}] = point.seconds.median;
  }
  std::map<int, std::vector<double>> ratios;
  for (const MeasuredCompute& point : profile.compute) {
    const auto found = own.find({point.kind, point.dtype, point.flops, point.bytes});
    if (point.ranks != ranks && found != own.end()) ratios[point.ranks].push_back(found->second / point.seconds.median);
  }
  std::map<int, double> slower;
  for (auto& [number, of] : ratios) {
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
    slower[number] = of[of.size() / 2];
  }
  return slower;
}

}  // namespace

MeasuredRates::MeasuredRates(const DeviceProfile& profile, int ranks) {
  AddCompute(profile, ranks);
  AddLaunch(profile, ranks);
  for (const MeasuredCommunication& point : profile.communication) {
    communication_[{point.kind, point.members, point.per_node, point.nodes}].push_back(
        {point.bytes, point.bytes, point.seconds.median, point.scaled == 0 && profile.scaled_from.empty()});
  }
  for (const MeasuredBeside& point : profile.beside) beside_[point.kind] = point.speed.median;
  for (const MeasuredSkew& point : profile.skew) skew_[point.kind][point.fullest] = point.factor.median;
  const auto sort = [](auto& tables) {
    for (auto& [key, points] : tables) {
      std::sort(points.begin(), points.end(),
                [](const Point& a, const Point& b) { return std::tie(a.size, a.bytes) < std::tie(b.size, b.bytes); });
    }
  };
  sort(compute_), sort(communication_);
}

void MeasuredRates::AddCompute(const DeviceProfile& profile, int ranks) {
  const bool shared = profile.gpu == "none";
  const std::map<int, double> slower = shared ? SlowerThan(profile, ranks) : std::map<int, double>();
  std::map<std::tuple<OpKind, DType, bool>, std::map<int, Points>> by_ranks;
  std::map<std::tuple<OpKind, DType, double, double>, int> nearest;  // on GPUs: the number of ranks for each use
  for (const MeasuredCompute& point : profile.compute) {
    const auto [found, added] =
        nearest.emplace(std::tuple(point.kind, point.dtype, point.flops, point.bytes), point.ranks);
    if (!added && Nearer(point.ranks, found->second, ranks)) found->second = point.ranks;
  }
  for (const MeasuredCompute& point : profile.compute) {
    if (!shared && nearest.at({point.kind, point.dtype, point.flops, point.bytes}) != point.ranks) continue;
    const bool products = point.flops > 0;
    const double seconds = point.seconds.median;
    by_ranks[{point.kind, point.dtype, products}][shared ? point.ranks : ranks].push_back(
        {products ? point.flops : point.bytes, point.bytes, seconds, profile.scaled_from.empty()});
    most_flops_ = std::max(most_flops_, point.flops / seconds);
    most_bytes_ = std::max(most_bytes_, point.bytes / seconds);
  }
  for (auto& [key, numbers] : by_ranks) {
    int chosen = numbers.begin()->first;
    for (const auto& [number, points] : numbers) chosen = Nearer(number, chosen, ranks) ? number : chosen;
    Points& points = compute_[key] = std::move(numbers[chosen]);
    if (chosen == ranks) continue;
    of_other_ranks_.insert(key);
    const auto factor = slower.find(chosen);
    for (Point& point : points) point.seconds *= factor == slower.end() ? 1 : factor->second;
  }
}

void MeasuredRates::AddLaunch(const DeviceProfile& profile, int ranks) {
  std::map<OpKind, int> chosen;
  for (const MeasuredLaunch& point : profile.launch) {
    const auto [found, added] = chosen.emplace(point.kind, point.ranks);
    if (!added && !Nearer(point.ranks, found->second, ranks)) continue;
    found->second = point.ranks;
    const bool own = point.ranks == ranks || profile.gpu != "none";
    const Known known = profile.scaled_from.empty() ? Known::kMeasured : Known::kBetween;
    launch_[point.kind] = {point.seconds.median, own ? known : Known::kEstimated};
  }
}

Seconds MeasuredRates::At(const Points& points, double size, double bytes) {
  // Of the points of one size, the one whose bytes are nearest.
  const auto nearest = [&](double wanted) {
    const Point* found = nullptr;
    for (const Point& point : points) {
      if (!SameSize(point.size, wanted)) continue;
      if (!found || std::abs(point.bytes - bytes) < std::abs(found->bytes - bytes)) found = &point;
    }
    return *found;
  };
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const Point& point) { return point.size > size || SameSize(point.size, size); });
  if (above == points.end() || (above == points.begin() && !SameSize(above->size, size))) {
    const Point edge = nearest(above == points.end() ? points.back().size : points.front().size);
    return {edge.seconds * size / edge.size, Known::kEstimated};
  }
  const Point high = nearest(above->size);
  if (SameSize(high.size, size)) {
    const bool measured = SameSize(high.bytes, bytes) && high.in_step;
    return {high.seconds * size / high.size, measured ? Known::kMeasured : Known::kBetween};
  }
  const Point low = nearest(std::prev(above)->size);
  const double share = std::log(size / low.size) / std::log(high.size / low.size);
  const double rate =
      std::exp((1 - share) * std::log(low.size / low.seconds) + share * std::log(high.size / high.seconds));
  return {size / rate, Known::kBetween};
}

std::optional<Seconds> MeasuredRates::Compute(const ComputeUse& use) const {
  const bool products = use.flops > 0;
  const auto found = compute_.find({use.kind, use.dtype, products});
  if (found == compute_.end()) return std::nullopt;
  const double size = products ? use.flops : use.bytes;
  if (size <= 0) return Seconds{0, Known::kMeasured};
  Seconds seconds = At(found->second, size, use.bytes);
  if (of_other_ranks_.contains({use.kind, use.dtype, products})) seconds.known = Known::kEstimated;
  return seconds;
}

std::optional<Seconds> MeasuredRates::Communication(const CommunicationUse& use) const {
  const auto found = communication_.find({use.kind, use.members, use.per_node, use.nodes});
  if (found == communication_.end()) return std::nullopt;
  return use.bytes > 0 ? At(found->second, use.bytes, use.bytes) : Seconds{0, Known::kMeasured};
}

std::optional<MeasuredRates::Message> MeasuredRates::LongestMessage(const CommunicationUse& use) const {
  const auto found = communication_.find({use.kind, use.members, use.per_node, use.nodes});
  if (found == communication_.end()) return std::nullopt;
  const Point& longest = found->second.back();
  return Message{longest.bytes, longest.seconds};
}

std::optional<Seconds> MeasuredRates::HostLaunch(OpKind kind) const {
  const auto found = launch_.find(kind);
  if (found == launch_.end()) return std::nullopt;
  return found->second;
}

std::optional<double> MeasuredRates::Beside(OpKind kind) const {
  const auto found = beside_.find(kind);
  if (found == beside_.end()) return std::nullopt;
  return found->second;
}

MeasuredRates::Messages MeasuredRates::messages(Transport transport, GroupReach reach) const {
  // Of a smaller one the difference is noise of the latency.
  constexpr double kLonger = 2;
  const bool across = reach == GroupReach::kAcrossNodes;
  struct Line {  // what a group of one shape took, from the smallest message to the largest
    double bytes = 0, more_bytes = 0;
    double seconds = 0, more_seconds = 0;
    double rounds = 1;
  };
  std::vector<Line> lines;
  for (const auto& [key, points] : communication_) {
    const auto& [kind, members, per_node, nodes] = key;
    if ((nodes > 1) != across) continue;
    const auto bytes_of = [&](const Point& point) {
      const Traffic traffic = TrafficOf({kind, point.size, members, per_node, nodes}, transport);
      return across ? traffic.network : traffic.link;
    };
    const Point &small = points.front(), &large = points.back();
    lines.push_back({bytes_of(small), bytes_of(large) - bytes_of(small), small.seconds, large.seconds - small.seconds,
                     TrafficOf({kind, small.size, members, per_node, nodes}, transport).rounds});
  }
  std::vector<double> speeds, latencies;
  for (const Line& line : lines) {
    if (line.more_bytes > 0 && line.more_seconds >= (kLonger - 1) * line.seconds)
      speeds.push_back(line.more_bytes / line.more_seconds);
  }
  const auto median = [](std::vector<double>& of) {
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
    std::nth_element(of.begin(), middle, of.end());
    return *middle;
  };
  Messages messages;
  if (!speeds.empty()) messages.speed = median(speeds);
  for (const Line& line : lines) {
    const double of_bytes = messages.speed > 0 ? line.bytes / messages.speed : 0;
    latencies.push_back(std::max(0.0, line.seconds - of_bytes) / line.rounds);
  }
  if (!latencies.empty()) messages.latency = median(latencies);
  return messages;
}

double MeasuredRates::Skew(OpKind kind, double fullest) const {
  const auto found = skew_.find(kind);
  if (found == skew_.end() || fullest <= 1) return 1;
  double below = 1, factor = 1;
  for (const auto& [at, measured] : found->second) {
    if (fullest < at) return factor + (measured - factor) * (fullest - below) / (at - below);
    below = at, factor = measured;
  }
  return factor;
}

}  // namespace planwright
