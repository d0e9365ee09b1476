#include "planner/plan/lane_fullness.h"

#include <algorithm>
#include <vector>

#include "planner/plan/balanced_slots.h"

namespace planwright {

void FullnessSum::AddStep(std::span<const int64_t> work, int64_t block) {
  std::vector<int64_t> of_step(lanes_);
  for (size_t begin = 0; begin < work.size(); begin += static_cast<size_t>(block)) {
    int64_t fullest = 0;
    for (int lane = 0; lane < lanes_; ++lane) {
      const LaneSamples share = SamplesOfLane(block, lanes_, lane);
      int64_t of_lane = 0;
      for (int64_t slot = share.first; slot < share.end; ++slot) of_lane += work[begin + static_cast<size_t>(slot)];
      of_step[static_cast<size_t>(lane)] += of_lane;
      all_ += of_lane;
      fullest = std::max(fullest, of_lane);
    }
    fullest_of_microbatches_ += fullest;
  }
  fullest_of_steps_ += *std::max_element(of_step.begin(), of_step.end());
}

Fullness FullnessSum::Of() const {
  if (all_ == 0) return {};
  const double mean = static_cast<double>(all_) / lanes_;
  return {static_cast<double>(fullest_of_steps_) / mean, static_cast<double>(fullest_of_microbatches_) / mean};
}

namespace {

// `first`: the work of the first samples of the run, in the order of their numbers.
Fullness FullnessOf(const Plan& plan, std::span<const int64_t> first, int lanes) {
  constexpr int64_t kMostSteps = 50;
  const int64_t block = plan.budget.block_samples, step = plan.budget.global_samples;
  // Of a damaged plan nothing is known.
  if (lanes < 1 || step < 1 || block < 1 || step % block != 0) return {};
  FullnessSum sum(lanes);
  if (static_cast<int64_t>(first.size()) < step) {  // as far as they go, in their order
    const size_t whole = first.size() / static_cast<size_t>(block) * static_cast<size_t>(block);
    if (whole > 0) sum.AddStep(first.first(whole), block);
    return sum.Of();
  }
  const int64_t steps =
      std::min({kMostSteps, static_cast<int64_t>(first.size()) / step, std::max<int64_t>(1, plan.budget.steps)});
  const std::span<const int64_t> patches = plan.data.counted.first_patches;  // samples are balanced by them
  for (int64_t i = 0; i < steps; ++i) {
    const auto begin = static_cast<size_t>(i * step), count = static_cast<size_t>(step);
    if (plan.data.balance != "images" || patches.size() < begin + count) {
      sum.AddStep(first.subspan(begin, count), block);
      continue;
    }
    std::vector<int64_t> dealt;
    for (const int64_t sample : BalancedSlots(patches.subspan(begin, count)))
      dealt.push_back(first[begin + static_cast<size_t>(sample)]);
    sum.AddStep(dealt, block);
  }
  return sum.Of();
}

}  // namespace

Fullness CountedFullness(const Plan& plan, int lanes) {
  return FullnessOf(plan, plan.data.counted.first_patches, lanes);
}

Fullness DocumentFullness(const Plan& plan, int lanes) {
  return FullnessOf(plan, plan.data.counted.first_squares, lanes);
}

}  // namespace planwright
