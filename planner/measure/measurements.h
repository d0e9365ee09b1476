// Times of instructions by what they are uses of, and the profile that they make (docs/measure.md).
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/plan/device_profile.h"
#include "planner/rates/uses.h"

namespace planwright {

class Measurements {
 public:
  // Each call is one repetition. A use without FLOPs and bytes, or of one member, has no rate: it is left out. So is a
  // time of 0, which a clock can give.
  void Add(const ComputeUse& use, const std::string& sizes, double seconds);
  void Add(const CommunicationUse& use, double seconds);
  void AddLaunch(OpKind kind, double seconds);

  // Fills the three lists of a profile.
  void Fill(DeviceProfile& profile) const;

 private:
  struct Computed {
    std::string sizes;  // of the first one
    std::vector<double> seconds;
  };
  std::map<std::tuple<OpKind, DType, double, double>, Computed> compute_;  // flops, bytes
  // Members, per node, nodes, bytes.
  std::map<std::tuple<OpKind, int, int, int, double>, std::vector<double>> communication_;
  std::map<OpKind, std::vector<double>> launch_;
};

// The median and the quartiles. `seconds` has at least one.
MeasuredTime TimeOf(std::vector<double> seconds);

// One profile of several of the same device. What more than one has measured gets the mean of their medians, weighted
// by repetitions, and the outer ones of their quartiles.
DeviceProfile Merged(const std::vector<DeviceProfile>& profiles);

}  // namespace planwright
