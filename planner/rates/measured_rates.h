// Seconds by what was measured on a device (docs/measure.md#between-the-points). Rates are looked up, not times: FLOP/s
// of products, bytes/s of everything else.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/plan/device_profile.h"
#include "planner/rates/uses.h"

namespace planwright {

class MeasuredRates {
 public:
  explicit MeasuredRates(const DeviceProfile& profile);

  // nullopt: no use of this kind was measured, or none in this dtype, or not over a group of this shape.
  std::optional<Seconds> Compute(const ComputeUse& use) const;
  std::optional<Seconds> Communication(const CommunicationUse& use) const;
  std::optional<Seconds> HostLaunch(OpKind kind) const;

  // The best that any kind reached, for those that were not measured; 0: nothing of the sort was.
  double most_flops() const { return most_flops_; }    // FLOP/s
  double most_bytes() const { return most_bytes_; }    // bytes/s
  double most_shared() const { return most_shared_; }  // bytes/s of communications

 private:
  struct Point {
    double size = 0;   // FLOPs, or bytes
    double bytes = 0;  // tells points of one size apart
    double seconds = 0;
  };
  using Points = std::vector<Point>;  // sorted by size and bytes; each size is above 0

  static Seconds At(const Points& points, double size, double bytes);

  std::map<std::tuple<OpKind, DType, bool>, Points> compute_;          // with products or without
  std::map<std::tuple<OpKind, int, int, int>, Points> communication_;  // members, per node, nodes
  std::map<OpKind, double> launch_;
  double most_flops_ = 0, most_bytes_ = 0, most_shared_ = 0;
};

}  // namespace planwright
