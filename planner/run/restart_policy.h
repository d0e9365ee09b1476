// Whether a run that failed is started again by itself, and when.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "planner/wire/records/outcome.h"

namespace planwright {

class RestartPolicy {
 public:
  // `most`: LaunchPlan::restarts.
  explicit RestartPolicy(int64_t most) : most_(most) {}

  // How long to wait before the next life: 1 s, and four times as long after each life without progress. None: the run
  // has ended, and `why` says why it is not started again; empty if nobody would expect it to be.
  // `newest_step`: of the newest checkpoint; 0: there is none.
  std::optional<std::chrono::seconds> Next(const Outcome& outcome, int64_t newest_step, std::string& why);
  int64_t restarts() const { return restarts_; }

 private:
  const int64_t most_;
  int64_t restarts_ = 0;
  int64_t step_ = -1;  // of the newest checkpoint when the last life failed
  int in_vain_ = 0;    // lives in a row that wrote no checkpoint
};

}  // namespace planwright
