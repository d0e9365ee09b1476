#include "planner/views/show/lane_work.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "planner/data/samples/sample_source.h"
#include "planner/plan/balanced_slots.h"

namespace planwright {
namespace {

constexpr int64_t kMostSteps = 50;
constexpr int64_t kMostSamples = 50'000;

// `patches` of the samples in their slots.
std::vector<int64_t> InSlots(const std::vector<int64_t>& patches, const std::vector<int64_t>& slots) {
  std::vector<int64_t> dealt;
  for (const int64_t sample : slots) dealt.push_back(patches[static_cast<size_t>(sample)]);
  return dealt;
}

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
  for (int64_t step = 0; step < work.steps; ++step) {
    const absl::StatusOr<std::vector<int64_t>> patches = PatchesOfSamples(**source, step * samples, samples);
    if (!patches.ok()) return patches.status();
    work.patches = std::accumulate(patches->begin(), patches->end(), work.patches);
    const std::vector<int64_t> dealt = InSlots(*patches, BalancedSlots(*patches));
    for (size_t i = 0; i < work.modules.size(); ++i) {
      in_order[i].AddStep(*patches, plan.budget.block_samples);
      balanced[i].AddStep(dealt, plan.budget.block_samples);
    }
  }
  for (size_t i = 0; i < work.modules.size(); ++i) {
    work.modules[i].in_order = in_order[i].Of();
    work.modules[i].balanced = balanced[i].Of();
  }
  return work;
}

}  // namespace planwright
