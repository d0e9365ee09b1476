// A profile of one device for another of its kind, by a probe: what a few steps took there (docs/measure.md#a-probe).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/device_profile.h"
#include "planner/run/measure/step_uses.h"

namespace planwright {

// A profile that is to be scaled, and the file that it was read from.
struct ProbedBase {
  DeviceProfile profile;
  std::string path;
};

// The base with the times of each class of uses multiplied by what they take in the probe, which is a profile of the
// other device: what the uses of the class took there in all, over what the base says for them in all, each as often as
// the steps of the probe have it; communications each once. These are the uses that the base has measured at their
// size, or, where there are none, those that lie between two of its sizes. Classes: products, attention and scans, all
// other uses, launches, communications. These last stay as they are if the probe has none. Factors of experts and
// speeds beside the other sort stay, too.
//
// InvalidArgument: the base and the probe are of other devices, the base is scaled itself, or the probe has no use of a
// class that the base has.
absl::StatusOr<DeviceProfile> ScaledProfile(const ProbedBase& base, const DeviceProfile& probe, const StepUses& steps);

// Whether a probe on `gpu`, the recipe's word, can scale the base: what is known before it runs.
absl::Status CheckBase(const ProbedBase& base, const std::string& gpu);

}  // namespace planwright
