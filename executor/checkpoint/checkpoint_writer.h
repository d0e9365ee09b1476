// Writes checkpoints while training goes on (docs/checkpoints.md#writing-beside-training): the state of this rank is
// copied to host memory (host_copies.h), and a thread writes the copy. When the next checkpoint is due before that is
// done, training waits for it: there is never a second copy.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "executor/checkpoint/host_copies.h"
#include "executor/communication/rendezvous.h"
#include "executor/fail_point.h"
#include "executor/optimizer/step_state.h"
#include "planner/checkpoint/format.h"
#include "planner/plan/plan.h"

namespace c10d {
class Store;
}

namespace planwright::executor {

// What a checkpoint cost, for the line that rank 0 prints.
struct CheckpointTimes {
  double waited = 0;  // seconds that training waited for the checkpoint before this one
  double copied = 0;  // seconds of the copy to host memory, beside the training
};

class CheckpointWriter {
 public:
  // `run_dir` is shared by all ranks. `life`: of this launch. `verified`: the step of the checkpoint that was loaded,
  // which stays; -1: none was. `leave`: ends the process with an exit status and a message; called by the thread that
  // writes. The thread has a connection of its own to the store. It passes the fail points "write" and "publish".
  CheckpointWriter(const Plan& plan, const Environment& environment, std::string run_dir, int life, int64_t verified,
                   std::function<void(int, const std::string&)> leave, FailPointHook fail_point = {});
  ~CheckpointWriter();  // does not wait for the disk: what is not published is lost

  // Allocates the memory for copies of the module, before the first step.
  void Prepare(const ModuleState& module) { copies_.Prepare(module); }
  // In this order, once for each checkpoint.
  void SaveCounters(const StepState& step);
  void Save(ModuleState& module);
  void Publish();

  // Waits until the last one is published.
  void Finish();

 private:
  void WaitForWriter();
  void Run();
  void Write(const CheckpointCounters& counters, CheckpointTimes times);
  void PublishAll(const std::string& folder, const CheckpointCounters& counters,
                  const std::optional<ManifestShard>& own, const CheckpointTimes& times,
                  std::chrono::steady_clock::time_point begin);
  void Retain();
  c10d::Store& store();

  const Plan& plan_;
  const Environment environment_;
  const std::string run_dir_;
  const int life_;
  const int64_t verified_;
  const std::function<void(int, const std::string&)> leave_;
  const FailPointHook fail_point_;
  HostCopies copies_;
  CheckpointCounters counters_;  // of the one being copied
  CheckpointTimes times_;        // of the same
  c10::intrusive_ptr<c10d::Store> store_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;  // a copy waits for the thread
  bool busy_ = false;     // a copy waits, or is being written
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace planwright::executor
