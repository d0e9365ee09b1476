// Ends an evaluation between two of its rounds where a rank is asked to stop (docs/checkpoints.md#stopping). Ranks may
// be in different rounds at one moment, and all must end at the same one: so rank 0 says how far an evaluation may go
// on, and the others do not go further.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace c10d {
class Store;
}

namespace planwright::executor {

class EvaluationStop {
 public:
  using Clock = std::chrono::steady_clock;

  // `asked`: whether this rank was asked to stop. Keeps a reference to the store. `pause`: rank 0 lets an evaluation go
  // on for about so long before it looks again; it looks before each round that takes longer.
  EvaluationStop(int rank, int life, c10d::Store& store, std::function<bool()> asked,
                 std::chrono::milliseconds pause = std::chrono::seconds(1))
      : rank_(rank), life_(life), store_(store), asked_(std::move(asked)), pause_(pause) {}

  // Before each round, which is counted from 0 over all sets of an evaluation after so many steps; and once more behind
  // the last round. Whether the evaluation ends here: all ranks get the same answer for the same round. `settle`: waits
  // until the device has done all earlier rounds; called where rank 0 looks, so that its times are true. Errors are
  // those of the store.
  bool Before(int64_t steps_done, int64_t round, const std::function<void()>& settle);

  // Seconds between two looks of rank 0 in the evaluation, at most: so long a request may go unheard. 0 on other ranks.
  double longest() const { return longest_; }

 private:
  int64_t Look(int64_t round);

  const int rank_, life_;
  c10d::Store& store_;
  const std::function<bool()> asked_;
  const std::chrono::milliseconds pause_;
  int64_t allowed_ = 0;                         // rounds that may be done without another look
  int64_t looks_ = 0, last_ = 0, granted_ = 0;  // of this evaluation; the round of the last look, and what it allowed
  Clock::time_point looked_;
  double longest_ = 0;
  bool told_ = false;  // rank 0 knows that this rank was asked
};

}  // namespace planwright::executor
