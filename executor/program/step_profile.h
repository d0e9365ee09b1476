// The profile of some steps (`--trace`): records when each of their instructions was launched and when its stream ran
// it, and writes them as this rank's trace (planner/wire/records/trace.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "executor/program/bound_program.h"
#include "executor/program/rank.h"
#include "executor/telemetry/instruction_clock.h"
#include "planner/plan/link/linked_program.h"
#include "planner/wire/records/trace.h"

namespace planwright::executor {

class StepProfile {
 public:
  StepProfile(std::string run_dir, StepRange steps) : run_dir_(std::move(run_dir)), steps_(steps) {}

  // So many steps are done: what is left of the steps is recorded, which may be none. Called before Prepare.
  void GoOnAfter(int64_t steps_done) { steps_.first = std::max(steps_.first, steps_done + 1); }
  bool nothing_left() const { return steps_.first > steps_.last; }
  const StepRange& steps() const { return steps_; }

  // Makes everything that recording needs. Called before the first step, so that a profiled step allocates nothing.
  void Prepare(const LinkedProgram& program, at::Device device);
  // `step`: from 0.
  bool Covers(int64_t step) const { return step + 1 >= steps_.first && step + 1 <= steps_.last; }
  bool EndsWith(int64_t step) const { return step + 1 == steps_.last; }

  // The number by which the functions below know an instruction. `entry`: its index in the program.
  int64_t NumberOf(int64_t step, size_t entry) const {
    return (step + 1 - steps_.first) * static_cast<int64_t>(entries_) + static_cast<int64_t>(entry - first_entry_);
  }
  // Called by the walker's thread around the launch.
  void Launching(int64_t number) { launches_[static_cast<size_t>(number)].begin = MonotonicNow(); }
  // `waited`: how long the host waited in it for a device that was far behind.
  void Launched(int64_t number, std::chrono::nanoseconds waited) {
    Launch& launch = launches_[static_cast<size_t>(number)];
    launch.end = MonotonicNow(), launch.waited = waited.count();
  }
  // Called around the work itself, on the thread and with the stream on which it runs.
  void Begin(int64_t number) { clock_->Begin(static_cast<size_t>(number)); }
  void End(int64_t number) { clock_->End(static_cast<size_t>(number)); }

  // After the last of the steps: waits for the device and writes the trace. The current stream must wait for all
  // others. ExitError (kExitStorage) if the file cannot be written.
  void Write(const Rank& rank, const LinkedProgram& program, const BoundProgram& bound);

 private:
  struct Launch {
    int64_t begin = 0, end = 0, waited = 0;  // as those of TraceInstruction
  };

  const std::string run_dir_;
  StepRange steps_;
  size_t first_entry_ = 0, entries_ = 0;  // of a step, in the program
  std::vector<Launch> launches_;
  std::unique_ptr<InstructionClock> clock_;
};

}  // namespace planwright::executor
