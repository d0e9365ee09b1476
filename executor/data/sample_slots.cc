#include "executor/data/sample_slots.h"

#include <utility>

#include "executor/data/file_error.h"
#include "planner/plan/balanced_slots.h"

namespace planwright::executor {
namespace {

constexpr size_t kSteps = 4;  // the one that trains, two that are read ahead, and one to spare

}  // namespace

SampleSlots::SampleSlots(const Plan& plan, std::shared_ptr<const SampleSource> source)
    : balanced_(plan.data.balance == "images"), global_samples_(plan.budget.global_samples),
      source_(std::move(source)) {}

int64_t SampleSlots::NumberOf(int64_t slot) {
  if (!balanced_) return slot;
  const int64_t step = slot / global_samples_;
  const std::lock_guard lock(mutex_);
  auto order = orders_.find(step);
  if (order == orders_.end()) {
    order = orders_.emplace(step, OrderOf(step)).first;
    if (orders_.size() > kSteps)
      orders_.erase(orders_.begin()->first == step ? std::prev(orders_.end()) : orders_.begin());
  }
  return step * global_samples_ + order->second[slot % global_samples_];
}

std::vector<int64_t> SampleSlots::OrderOf(int64_t step) const {
  const absl::StatusOr<std::vector<int64_t>> patches =
      PatchesOfSamples(*source_, step * global_samples_, global_samples_);
  if (!patches.ok()) throw FileError(patches.status());
  return BalancedSlots(*patches);
}

}  // namespace planwright::executor
