// Which sample stands at which place of the run. Lanes, bridges and microbatches count slots: slot j of step t is
// t G + j, with G global samples. Without balance slot n holds sample n; with `data.balance: images` the samples of a
// step stand in an order that spreads the work (docs/training/data.md#balance).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "planner/data/samples/sample_source.h"

namespace planwright::executor {

class SampleSlots {
 public:
  // `source` is asked only with balance.
  SampleSlots(const Plan& plan, std::shared_ptr<const SampleSource> source);

  // The number of the sample. From any thread. FileError if the source does not know how large the samples are.
  int64_t NumberOf(int64_t slot);

 private:
  std::vector<int64_t> OrderOf(int64_t step) const;

  const bool balanced_;
  const int64_t global_samples_;
  const std::shared_ptr<const SampleSource> source_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<int64_t>> orders_;  // of the latest steps; guarded by mutex_
};

}  // namespace planwright::executor
