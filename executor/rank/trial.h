// What a rank tells of a trial (planner/wire/records/rank_trial.h), as it goes on.
#pragma once

#include <ATen/core/Tensor.h>

#include "executor/rank/assignment.h"
#include "executor/telemetry/start_up.h"
#include "planner/wire/records/rank_trial.h"

namespace planwright::executor {

class Trial {
 public:
  explicit Trial(const Assignment& assignment);

  // Each writes what is known by now. A rank of no trial does nothing. Exits with kExitStorage if it cannot be written.
  void Begin();                         // reads the files that its node is asked to read, on the node's first rank
  void TakeDevice(at::Device device);   // how much of its memory is free
  void Ready(const StartUp& start_up);  // the first step can begin
  void Done();                          // how much memory the process has held

 private:
  void Write() const;

  const Assignment& assignment_;
  RankTrial trial_;
};

}  // namespace planwright::executor
