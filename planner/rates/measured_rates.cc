#include "planner/rates/measured_rates.h"

#include <algorithm>
#include <cmath>

namespace planwright {
namespace {

// Sizes are sums of products of whole numbers, and means of them: equal ones may differ in their last digits.
bool SameSize(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(a, b); }

}  // namespace

MeasuredRates::MeasuredRates(const DeviceProfile& profile) {
  for (const MeasuredCompute& point : profile.compute) {
    const bool products = point.flops > 0;
    const double seconds = point.seconds.median;
    compute_[{point.kind, point.dtype, products}].push_back(
        {products ? point.flops : point.bytes, point.bytes, seconds});
    most_flops_ = std::max(most_flops_, point.flops / seconds);
    most_bytes_ = std::max(most_bytes_, point.bytes / seconds);
  }
  for (const MeasuredCommunication& point : profile.communication) {
    communication_[{point.kind, point.members, point.per_node, point.nodes}].push_back(
        {point.bytes, point.bytes, point.seconds.median});
    most_shared_ = std::max(most_shared_, point.bytes / point.seconds.median);
  }
  for (const MeasuredLaunch& point : profile.launch) launch_[point.kind] = point.seconds.median;
  const auto sort = [](auto& tables) {
    for (auto& [key, points] : tables) {
      std::sort(points.begin(), points.end(),
                [](const Point& a, const Point& b) { return std::tie(a.size, a.bytes) < std::tie(b.size, b.bytes); });
    }
  };
  sort(compute_), sort(communication_);
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
    return {high.seconds * size / high.size, SameSize(high.bytes, bytes) ? Known::kMeasured : Known::kBetween};
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
  return size > 0 ? At(found->second, size, use.bytes) : Seconds{0, Known::kMeasured};
}

std::optional<Seconds> MeasuredRates::Communication(const CommunicationUse& use) const {
  const auto found = communication_.find({use.kind, use.members, use.per_node, use.nodes});
  if (found == communication_.end()) return std::nullopt;
  return use.bytes > 0 ? At(found->second, use.bytes, use.bytes) : Seconds{0, Known::kMeasured};
}

std::optional<Seconds> MeasuredRates::HostLaunch(OpKind kind) const {
  const auto found = launch_.find(kind);
  if (found == launch_.end()) return std::nullopt;
  return Seconds{found->second, Known::kMeasured};
}

}  // namespace planwright
