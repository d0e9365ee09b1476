// The device that a rank computes on, and whether the times of `cluster.profile` are those of such a device.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/statusor.h>

#include <string>

#include "executor/telemetry/recorder.h"
#include "planner/plan/device_profile.h"
#include "planner/plan/plan.h"

namespace planwright::executor {

// `wanted`: the option --device, "cpu" or "cuda". If it is empty, the plan decides: CUDA if its cluster has GPUs. Makes
// a CUDA device current. InvalidArgument if the device cannot be had; a plan for GPUs never falls back to CPUs
// silently.
absl::StatusOr<at::Device> ChooseDevice(const Plan& plan, const std::string& wanted, int local_rank);

// What ranks of this program can compute on, for the launcher (planner/run/launch/check_machine.h): "cpu", or "cuda N"
// with the number of GPUs that they see.
std::string DevicesText();

// From here on an instruction counts as done when the GPU has done it. (On CPUs: when its call has returned.)
void FollowDevice(at::Device device, Recorder& recorder);

// Empty, or in what the device that was measured differs from this one: its name, driver or libraries. Times and
// deadlines that follow from the profile are then of another machine.
std::string ProfileMismatch(const DeviceProfile& profile, at::Device device);

}  // namespace planwright::executor
