// Seconds by what was measured on a device (docs/measure.md#between-the-points). Rates are looked up, not times: FLOP/s
// of products, bytes/s of everything else.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "planner/plan/device_profile.h"
#include "planner/predict/rates/traffic.h"
#include "planner/predict/rates/uses.h"

namespace planwright {

enum class GroupReach { kWithinNodes, kAcrossNodes };  // of the members of a group

class MeasuredRates {
 public:
  // `ranks`: on the fullest node of the plan that asks. CPU ranks share its cores and memory, so theirs are the points
  // of as many ranks, or else those of the nearest number, as far slower as all uses that both numbers have. A GPU
  // belongs to one rank: of points of one size, those of the nearest number count.
  explicit MeasuredRates(const DeviceProfile& profile, int ranks = 1);

  // nullopt: no use of this kind was measured, or none in this dtype, or not over a group of this shape.
  std::optional<Seconds> Compute(const ComputeUse& use) const;
  std::optional<Seconds> Communication(const CommunicationUse& use) const;
  // The longest message that was measured of such a communication; nullopt: none was.
  struct Message {
    double bytes = 0, seconds = 0;
  };
  std::optional<Message> LongestMessage(const CommunicationUse& use) const;
  std::optional<Seconds> HostLaunch(OpKind kind) const;
  // The share of its speed at which a kind goes on beside one of the other sort; nullopt: it was not measured.
  std::optional<double> Beside(OpKind kind) const;
  // How much longer a kind takes if the fullest expert of its rank has `fullest` times the mean. On a line between what
  // was measured, and beyond it as the last. 1: nothing was.
  double Skew(OpKind kind, double fullest) const;

  // The best that any kind reached, for those that were not measured; 0: nothing of the sort was.
  double most_flops() const { return most_flops_; }  // FLOP/s
  double most_bytes() const { return most_bytes_; }  // bytes/s
  // What messages take on a device without a data sheet (docs/measure.md#between-the-points): of groups within nodes,
  // or across them, by what their algorithms send.
  struct Messages {
    std::optional<double> latency;  // seconds of a round without bytes; nullopt: no such communication was measured
    double speed = 0;               // bytes/s of a link, or of a member's share of the network; 0: nothing tells
  };
  Messages messages(Transport transport, GroupReach reach) const;

 private:
  struct Point {
    double size = 0;   // FLOPs, or bytes
    double bytes = 0;  // tells points of one size apart
    double seconds = 0;
    bool in_step = true;  // false: it was timed alone or on another device, and scaled
  };
  using Points = std::vector<Point>;  // sorted by size and bytes; each size is above 0

  static Seconds At(const Points& points, double size, double bytes);

  void AddCompute(const DeviceProfile& profile, int ranks);
  void AddLaunch(const DeviceProfile& profile, int ranks);

  std::map<std::tuple<OpKind, DType, bool>, Points> compute_;          // with products or without
  std::map<std::tuple<OpKind, int, int, int>, Points> communication_;  // members, per node, nodes
  std::map<OpKind, Seconds> launch_;
  std::set<std::tuple<OpKind, DType, bool>> of_other_ranks_;  // keys of compute_ whose points have another number
  std::map<OpKind, double> beside_;
  std::map<OpKind, std::map<double, double>> skew_;
  double most_flops_ = 0, most_bytes_ = 0;
};

}  // namespace planwright
