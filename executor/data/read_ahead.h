// Makes the tensors of data instructions before training asks for them, on a thread of its own. Which samples a rank
// needs, and when, follows from its plan: the data instructions of a step are the same in every step. So while a device
// computes, the host prepares what comes next (docs/training/data.md#reading-ahead).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/ops/handler.h"

namespace planwright::executor {

class ReadAhead {
 public:
  // What one data instruction reads. Called by one thread at a time; may throw.
  using Read = std::function<Tensors(const Instruction&, const CallContext&)>;

  // The time that passes, for how long reads are waited for.
  using Clock = std::function<std::chrono::nanoseconds()>;

  explicit ReadAhead(Read read, Clock clock = MonotonicTime) : read_(std::move(read)), clock_(std::move(clock)) {}
  // Stops, and waits for the read that is under way.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Called once. `reads`: the data instructions of a step in program order; their `call.step` does not matter. Reads
  // begin at once, for the steps from `first_step` to `last_step` (from 0), and stay two microbatches ahead.
  void Begin(std::vector<DataRead> reads, int64_t first_step, int64_t last_step);

  // The outputs of one of these reads, once they are there. Throws here what its read threw. From any thread; each read
  // is taken once. Threads may take in any order that fits program order: nobody who takes one read may have to wait
  // until a later one is taken.
  Tensors Take(const Instruction& instruction, const CallContext& call);

  // For how long reads of a step were waited for in Take, all together: 0 if each was there when it was taken. Called
  // once for each step, when all its reads have been taken.
  std::chrono::nanoseconds WaitedIn(int64_t step);

  // What WaitedIn has said of all steps so far. `worst_step`: from 0, the one that waited longest; -1: none waited.
  struct Waits {
    int64_t steps = 0, worst_step = -1;
    std::chrono::nanoseconds all{0}, worst{0};
  };
  Waits waits() const;

  // Reads that are done and not taken.
  size_t ready() const;

  // From now on no read begins.
  void Stop();

 private:
  struct Done {
    Tensors values;
    std::exception_ptr failure;
  };
  // One read of the run, by its number: step by step, in program order.
  struct Ahead {
    int64_t number;
    Done done;
  };
  static std::chrono::nanoseconds MonotonicTime();
  void ReadAll(const std::stop_token& stop);
  // The index of a read among those of a step. c10::Error if the plan's steps do not have it.
  int64_t IndexOf(const Instruction& instruction, const CallContext& call) const;

  const Read read_;
  const Clock clock_;
  std::vector<DataRead> reads_;  // of a step
  int64_t first_step_ = 0, last_step_ = -1;
  size_t most_ahead_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Ahead> ahead_;                             // read and not taken; guarded by mutex_
  std::map<int64_t, std::chrono::nanoseconds> waited_;  // by step; guarded by mutex_
  Waits waits_;                                         // guarded by mutex_
  std::jthread thread_;                                 // last: it ends before the rest goes
};

}  // namespace planwright::executor
