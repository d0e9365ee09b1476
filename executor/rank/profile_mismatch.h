// `cluster.profile`: whether its times are those of the machine on which a rank runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "planner/plan/device_profile.h"

namespace planwright::executor {

// Empty, or in what the device that was measured differs from this one: its name, driver or libraries. Times and
// deadlines that follow from the profile are then of another machine.
std::string ProfileMismatch(const DeviceProfile& profile, at::Device device);

}  // namespace planwright::executor
