#include "planner/views/show/lane_work.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>

#include "planner/data/samples/balance.h"
#include "planner/data/samples/sample_source.h"

namespace planwright {
namespace {

constexpr int64_t kMostSteps = 50;
constexpr int64_t kMostSamples = 50'000;

// Sums over steps and microbatches for one module and one order.
class FullnessSum {
 public:
  explicit FullnessSum(int lanes) : lanes_(lanes) {}

  // `slots`: the sample, an index of `patches`, of each slot of one step.
  void AddStep(std::span<const int64_t> patches, std::span<const int64_t> slots, int64_t block) {
    std::vector<int64_t> of_step(lanes_);
    for (size_t begin = 0; begin < slots.size(); begin += block) {
      int64_t fullest = 0;
      for (int lane = 0; lane < lanes_; ++lane) {
        const LaneSamples share = SamplesOfLane(block, lanes_, lane);
        int64_t work = 0;
        for (int64_t slot = share.first; slot < share.end; ++slot) work += patches[slots[begin + slot]];
        of_step[lane] += work;
        fullest = std::max(fullest, work);
      }
      fullest_of_microbatches_ += fullest;
    }
    fullest_of_steps_ += *std::max_element(of_step.begin(), of_step.end());
  }

  // `patches`: of all samples that were added; above 0.
  Fullness Of(int64_t patches) const {
    const double mean = static_cast<double>(patches) / lanes_;
    return {static_cast<double>(fullest_of_steps_) / mean, static_cast<double>(fullest_of_microbatches_) / mean};
  }

 private:
  const int lanes_;
  int64_t fullest_of_steps_ = 0, fullest_of_microbatches_ = 0;
};

}  // namespace

absl::StatusOr<LaneWork> MeasureLaneWork(const Plan& plan) {
  const absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
  if (!source.ok()) return source.status();
  const int64_t samples = plan.budget.global_samples;
  LaneWork work;
  work.steps = std::clamp<int64_t>(kMostSamples / samples, 1, std::min(kMostSteps, plan.budget.steps));
  std::vector<FullnessSum> in_order, balanced;
  for (const EncoderData& encoder : plan.data.encoders) {
    const Module* module = plan.FindModule(encoder.module);
    if (module == nullptr) return absl::InvalidArgumentError(absl::StrCat("there is no module ", encoder.module));
    work.modules.push_back({.module = encoder.module, .in_order = {}, .balanced = {}});
    in_order.emplace_back(module->grid.dp);
    balanced.emplace_back(module->grid.dp);
  }
  std::vector<int64_t> numbers(samples);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int64_t step = 0; step < work.steps; ++step) {
    const absl::StatusOr<std::vector<int64_t>> patches = PatchesOfSamples(**source, step * samples, samples);
    if (!patches.ok()) return patches.status();
    work.patches = std::accumulate(patches->begin(), patches->end(), work.patches);
    const std::vector<int64_t> slots = BalancedSlots(*patches);
    for (size_t i = 0; i < work.modules.size(); ++i) {
      in_order[i].AddStep(*patches, numbers, plan.budget.block_samples);
      balanced[i].AddStep(*patches, slots, plan.budget.block_samples);
    }
  }
  if (work.patches == 0) return work;
  for (size_t i = 0; i < work.modules.size(); ++i) {
    work.modules[i].in_order = in_order[i].Of(work.patches);
    work.modules[i].balanced = balanced[i].Of(work.patches);
  }
  return work;
}

}  // namespace planwright
