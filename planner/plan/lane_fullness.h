// How evenly the images of a run are dealt to the lanes of a module (docs/training/data.md#balance).
#pragma once

#include <cstdint>
#include <span>

#include "planner/plan/plan.h"

namespace planwright {

// The patches of the fullest lane over those of the mean lane: 1 is even. Of several steps it is the sum of the fullest
// over the sum of the means, so steps with more images weigh more.
struct Fullness {
  double step = 1;        // patches of a whole step
  double microbatch = 1;  // of each microbatch by itself
};

// Sums over steps and microbatches, for one number of lanes.
class FullnessSum {
 public:
  explicit FullnessSum(int lanes) : lanes_(lanes) {}

  // `patches`: of the sample in each slot of one step. `block`: samples of a microbatch, of all lanes; divides them.
  void AddStep(std::span<const int64_t> patches, int64_t block);

  Fullness Of() const;  // even, as long as there are no patches

 private:
  const int lanes_;
  int64_t patches_ = 0, fullest_of_microbatches_ = 0, fullest_of_steps_ = 0;
};

// Of the first steps, at most 50, of which the index has counted the patches of samples; even where it has not.
Fullness CountedFullness(const Plan& plan, int lanes);

}  // namespace planwright
