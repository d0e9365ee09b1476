// Two ends of each number: wide enough for everything that is meant, and so narrow that nothing that is computed from
// such numbers is infinite, no number, or beyond 64 bits. Keys of recipes (recipe/recipe_keys.h) and fields of plans
// (plan_fields.h) have their ranges from here.
#pragma once

#include "planner/base/text/limits.h"

namespace planwright {

struct NumberRange {
  double low = 1, high = 0;  // low above high: there is no range
  bool above = false;        // `low` itself is outside
  bool below = false;        // `high` itself is outside
  bool or_zero = false;      // 0 is inside, too

  constexpr bool any() const { return low > high; }
  // Not so of NaN, where there is a range.
  constexpr bool Holds(double value) const {
    if (any() || (or_zero && value == 0)) return true;
    return (above ? value > low : value >= low) && (below ? value < high : value <= high);
  }
  constexpr NumberRange OrZero() const { return {low, high, above, below, true}; }
  bool operator==(const NumberRange&) const = default;
};

inline constexpr NumberRange kAnyNumber;
inline constexpr NumberRange kBelowOne{.low = 0, .high = 1, .below = true};
inline constexpr NumberRange kSampleCount{0, kMostSamples};

// ---- Devices, in the units of cluster.device: from a kilobyte to a petabyte, from a million to 1e21 operations a
// second, from a kilobyte to 1e18 bytes a second.
inline constexpr NumberRange kDeviceMemory{1e-6, 1e6};                         // GB; of a node's host, too
inline constexpr NumberRange kDevicePeak{1e-6, 1e9}, kDeviceSpeed{1e-6, 1e9};  // TFLOP/s, GB/s

// ---- Models.
inline constexpr NumberRange kEpsilon{1e-30, 1e10};      // that is added where a norm or the optimizer divides
inline constexpr NumberRange kImbalance{1, kMostRanks};  // a multiple of the mean of all ranks
inline constexpr NumberRange kConstant{0, 1e10};         // of a model: all real ones
inline constexpr NumberRange kInitial{0, 1e9};           // the size of a number that weights are drawn with
inline constexpr NumberRange kMeanSquare{1e-30, 1e30};   // of the rows of a bridge; fp32 holds it

// ---- Steps.
inline constexpr NumberRange kLearningRate{0, 1e6}, kWeightDecay{0, 1e6};
inline constexpr NumberRange kNorm{1e-12, 1e30};                             // of gradients
inline constexpr NumberRange kGrowth{.low = 1, .high = 1e9, .above = true};  // of a loss, as a factor

// ---- Times and rates.
inline constexpr NumberRange kDeadline{0.001, 1e9};  // seconds, up to 30 years
inline constexpr NumberRange kMultiple{1, 1e9};      // of an estimate
inline constexpr NumberRange kPredicted{0, 1e60};    // seconds of a step, by the slowest of these rates
inline constexpr NumberRange kMeasured{1e-12, 1e9};  // seconds of an instruction, or a share
inline constexpr NumberRange kFastest{0, 1e9};       // the quartile below it
inline constexpr NumberRange kWork{1e-3, 1e30};      // FLOPs, bytes
inline constexpr NumberRange kFullest{.low = 1, .high = 1e9, .above = true};  // expert, as a multiple of the mean

}  // namespace planwright
