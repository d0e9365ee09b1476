#include "executor/data/sample_slots.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "executor/data/file_error.h"
#include "planner/samples/balance.h"

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
  std::vector<int64_t> patches;
  for (int64_t i = 0; i < global_samples_; ++i) {
    const int64_t number = step * global_samples_ + i;
    const absl::StatusOr<int64_t> of_sample = source_->Patches(number);
    if (!of_sample.ok()) {
      throw FileError(
          absl::Status(of_sample.status().code(), absl::StrCat("sample ", number, ": ", of_sample.status().message())));
    }
    patches.push_back(*of_sample);
  }
  return BalancedSlots(patches);
}

}  // namespace planwright::executor
