// How evenly the images of a run, and its packed documents, are dealt to the lanes of a module
// (docs/training/data.md#balance).
#pragma once

#include <cstdint>
#include <span>

#include "planner/plan/plan.h"

namespace planwright {

// The work of the fullest lane over that of the mean lane: 1 is even. Work is counted in patches of images, or in
// squares of documents' tokens. Of several steps it is the sum of the fullest over the sum of the means, so steps with
// more work weigh more.
struct Fullness {
  double step = 1;        // of a whole step
  double microbatch = 1;  // of each microbatch by itself
};

// Sums over steps and microbatches, for one number of lanes.
class FullnessSum {
 public:
  explicit FullnessSum(int lanes) : lanes_(lanes) {}

  // `work`: of the sample in each slot of one step. `block`: samples of a microbatch, of all lanes; divides them.
  void AddStep(std::span<const int64_t> work, int64_t block);

  Fullness Of() const;  // even, as long as there is no work

 private:
  const int lanes_;
  int64_t all_ = 0, fullest_of_microbatches_ = 0, fullest_of_steps_ = 0;
};

// Of the first steps, at most 50, of which the index has counted the patches of samples; even where it has not.
Fullness CountedFullness(const Plan& plan, int lanes);
// The same of the scores of packed documents, by the squares of their tokens.
Fullness DocumentFullness(const Plan& plan, int lanes);

}  // namespace planwright
