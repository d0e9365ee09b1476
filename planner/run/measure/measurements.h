// Times of instructions by what they are uses of, and the profile that they make (docs/measure.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/plan/device_profile.h"
#include "planner/predict/rates/uses.h"

namespace planwright {

// What ran beside an instruction of the other sort, work or a communication, on its own rank, as parts of its time.
struct Beside {
  double earlier = 0;  // what was launched before it
  double any = 0;      // whatever it was
};

class Measurements {
 public:
  // `ranks`: on the fullest node.
  explicit Measurements(int ranks = 1) : ranks_(ranks) {}

  // Each call is one repetition, inside a step of a rank. A use without FLOPs and bytes, or of one member, has no rate:
  // it is left out. So is a time of 0, which a clock can give. What ran beside another sort says how fast its kind goes
  // on then; as a time of its use it only counts if none ran undisturbed.
  void Add(const ComputeUse& use, const std::string& sizes, double seconds, const Beside& beside = {});
  void Add(const CommunicationUse& use, double seconds, const Beside& beside = {});
  // One that was timed again and again, beside nothing else.
  void AddAlone(const CommunicationUse& use, double seconds);
  void AddLaunch(OpKind kind, double seconds);
  // An instruction on rows of experts took `factor` times as long as with as many rows for each expert.
  void AddSkew(OpKind kind, double fullest, double factor);

  // The step of a rank is over. All repetitions of a use in it count as their mean, so that what a busy machine takes
  // from some of them is in a predicted step as it is in real ones; steps in which it takes much more are outvoted.
  void EndStep();

  // Fills the lists of a profile, when all steps have ended.
  void Fill(DeviceProfile& profile) const;

 private:
  // The mean of each step.
  struct Means {
    std::vector<double> of_steps;
    double sum = 0;  // of the step that goes on
    int64_t count = 0;

    void Add(double seconds) { sum += seconds, ++count; }
    void EndStep() {
      if (count > 0) of_steps.push_back(sum / static_cast<double>(count));
      sum = 0, count = 0;
    }
  };
  struct Slowed {
    double seconds = 0;
    Beside beside;
  };
  struct Times {
    std::string sizes;  // of the first one
    Means undisturbed;
    std::vector<Slowed> slowed;
  };
  using ComputeKey = std::tuple<OpKind, DType, double, double>;        // flops, bytes
  using CommunicationKey = std::tuple<OpKind, int, int, int, double>;  // members, per node, nodes, bytes
  static void Add(double seconds, const Beside& beside, Times& times);
  void FillBeside(DeviceProfile& profile) const;
  void FillAlone(DeviceProfile& profile) const;

  const int ranks_;
  std::map<ComputeKey, Times> compute_;
  std::map<CommunicationKey, Times> communication_;
  std::map<CommunicationKey, std::vector<double>> alone_;
  std::map<OpKind, Means> launch_;
  std::map<std::pair<OpKind, double>, std::vector<double>> skew_;  // by the part of the fullest expert
};

// Kinds in which counts say how many rows each rank has. A trace does not tell them.
bool HasRowsOfItsOwn(OpKind kind);

// The median and the quartiles. `seconds` has at least one.
MeasuredTime TimeOf(std::vector<double> seconds);

// One profile of several of the same device. What more than one has measured gets the mean of their medians, weighted
// by repetitions, and the outer ones of their quartiles. What was timed alone is left out where another has it in
// steps.
DeviceProfile Merged(const std::vector<DeviceProfile>& profiles);

}  // namespace planwright
