// What a device does: the figures of its data sheet as a recipe gives them, and how long instructions were measured to
// take on it (docs/measure.md). A profile is a file of its own, and a part of each plan whose recipe names it: so every
// rank has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/instruction.h"
#include "planner/plan/value_type.h"

namespace planwright {

// `cluster.device`. 0: not given.
struct DeviceFigures {
  double memory = 0;     // GB
  double peak = 0;       // dense matrix products in the plan's precision, TFLOP/s
  double bandwidth = 0;  // of its memory, GB/s
  double link = 0;       // to other devices of its node, in one direction, GB/s
  double network = 0;    // its share of the network between nodes, in one direction, GB/s
  bool operator==(const DeviceFigures&) const = default;
};

// Seconds, or a ratio: the median, and the quartiles below and above it.
struct MeasuredTime {
  double median = 0, low = 0, high = 0;
  int64_t repetitions = 0;
  bool operator==(const MeasuredTime&) const = default;
};

// An instruction that computes or changes state: a ComputeUse (planner/predict/rates/rates.h).
struct MeasuredCompute {
  OpKind kind{};
  DType dtype = DType::kBf16;
  double flops = 0, bytes = 0;
  std::string sizes;  // "x[64, 32] -> y[64, 96]", for people
  MeasuredTime seconds;
  int ranks = 1;  // that were on the fullest node: CPU ranks share its memory and cores
  bool operator==(const MeasuredCompute&) const = default;
};

// A communication from the arrival of its last member on: a CommunicationUse.
struct MeasuredCommunication {
  OpKind kind{};
  double bytes = 0;
  int members = 2, per_node = 2, nodes = 1;
  MeasuredTime seconds;
  // 0: it took that in a step. Else it was timed again and again after the steps, and that time was multiplied by this:
  // what those of its kind that are in steps took there, against what they took alone.
  double scaled = 0;
  bool operator==(const MeasuredCommunication&) const = default;
};

// What the host takes to launch an instruction of this kind, and to come to it.
struct MeasuredLaunch {
  OpKind kind{};
  MeasuredTime seconds;
  int ranks = 1;  // as of MeasuredCompute
  bool operator==(const MeasuredLaunch&) const = default;
};

// How fast an instruction of this kind goes on while one of the other sort (work, or a communication), which its rank
// launched before, runs on another stream: the share of its speed alone, at most 1.
struct MeasuredBeside {
  OpKind kind{};
  MeasuredTime speed;
  bool operator==(const MeasuredBeside&) const = default;
};

// How much longer an instruction on the rows of several experts takes if the fullest expert of its rank has more than
// its part: `fullest` times the mean of the rank's experts, with as many rows in all.
struct MeasuredSkew {
  OpKind kind{};
  double fullest = 1;
  MeasuredTime factor;
  bool operator==(const MeasuredSkew&) const = default;
};

// How much longer uses of one class take on this device than on the one that was measured (scale_profile.h).
struct ScaledUses {
  std::string uses;          // "products"
  double factor = 1;         // what they took in a probe in all, over what the profile says for them in all
  double low = 1, high = 1;  // the quartiles of the factors of single uses; `factor` may lie outside
  int64_t count = 0;         // how many uses of the probe tell it
  bool operator==(const ScaledUses&) const = default;
};

inline constexpr int64_t kProfileFormatVersion = 1;

struct DeviceProfile {
  int64_t format_version = kProfileFormatVersion;
  std::string gpu;        // the recipe's word for the device: "h200_sxm", "none"; empty: nothing was measured
  std::string device;     // what it calls itself: "NVIDIA H200"
  std::string driver;     // its version; empty for CPUs
  std::string libraries;  // "LibTorch 2.11.0, CUDA 12.8, NCCL 2.27.5"
  std::string tool;       // version of Planwright
  std::string hosts;      // "1 host, 2 cores, 8 GB"
  std::string date;       // "2026-11-24"
  // Sorted by kind, dtype or group, size, ranks.
  std::vector<MeasuredCompute> compute;
  std::vector<MeasuredCommunication> communication;
  std::vector<MeasuredLaunch> launch;
  std::vector<MeasuredBeside> beside;
  std::vector<MeasuredSkew> skew;
  // Of a profile that is that of another device of the kind, scaled by a probe of this one: its file and date, and by
  // how much the times of each class are multiplied here. Empty: all times were measured on this device.
  std::string scaled_from;  // "recipes/profiles/h200_sxm.json of 2026-11-26"
  std::vector<ScaledUses> scaled_by;
  bool operator==(const DeviceProfile&) const = default;

  bool measured() const { return !gpu.empty(); }
};

// The text of a profile's file: canonical JSON. The same profile gives the same bytes.
std::string WriteProfile(const DeviceProfile& profile);
// Reads it. FailedPrecondition for another format_version. InvalidArgument, with the path
// ("compute[3].seconds.low: ..."), for text that is no such file, fields that are unknown, missing or of another type,
// and numbers out of range (plan_ranges.h).
absl::StatusOr<DeviceProfile> ReadProfile(std::string_view text);

}  // namespace planwright
