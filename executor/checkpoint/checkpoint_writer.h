// Writes checkpoints while training goes on (docs/checkpoints.md#writing-beside-training): the state of this rank is
// copied to host memory (host_copies.h), and a thread writes the copy. When the next checkpoint is due before that is
// done, training waits for it: there is never a second copy.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "executor/base/fail_point.h"
#include "executor/checkpoint/host_copies.h"
#include "executor/communication/rendezvous.h"
#include "executor/optimizer/step_state.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/format.h"

namespace c10d {
class Store;
}

namespace planwright::executor {

// What a rank has done for a checkpoint, as rank 0 needs it for the manifest and for the line that it prints.
struct RankReport {
  double copied = 0;                   // seconds until all was copied to host memory, beside the training
  int64_t through = 0;                 // bytes of host memory through which it was copied; 0: as much as it needs
  std::optional<ManifestShard> shard;  // none: the rank has nothing to write
};

class CheckpointWriter {
 public:
  // What the thread that writes calls.
  struct Hooks {
    std::function<void(int, const std::string&)> leave;  // ends the process with an exit status and a message
    // From now on what is left to do is that of others: true until they have done it.
    std::function<void(bool)> waits_for_others = {};
    FailPointHook fail_point = {};  // passes "write" and "publish"
  };

  // `run_dir` is shared by all ranks. `run_id`, `life`: of this launch. `verified`: the step of the checkpoint that was
  // loaded, which stays; -1: none was. The thread has a connection of its own to the store.
  CheckpointWriter(const Plan& plan, const Environment& environment, std::string run_dir, std::string run_id, int life,
                   int64_t verified, Hooks hooks);
  ~CheckpointWriter();  // does not wait for the disk: what is not published is lost

  // Manifest::data of all that will be published; on rank 0, before the first Publish.
  void SetSources(std::map<std::string, std::string> digests) { sources_ = std::move(digests); }
  // Manifest::base of them, the same.
  void SetBase(std::map<std::string, std::string> digests) { base_ = std::move(digests); }
  // Allocates the memory for copies from the device, before the first step.
  void Prepare(at::Device device) { copies_.Prepare(device); }
  // In this order, once for each checkpoint.
  void SaveCounters(const StepState& step, const ManifestNotes& notes);
  void Save(ModuleState& module);
  void Publish();

  // Waits until the last one is published, as SaveCounters does for the one before.
  void Finish();

 private:
  void WaitForWriter();
  void Run();
  void Write(const CheckpointCounters& counters, const ManifestNotes& notes, double waited);
  void PublishAll(const std::string& folder, Manifest manifest, const RankReport& own, double waited,
                  std::chrono::steady_clock::time_point begin);
  void Retain();
  void Remove(const std::string& folder);
  void WarnOnce(const std::string& folder, const std::string& line);
  std::string AwaitOther(const std::string& key);  // what another rank says
  c10d::Store& store();

  const Plan& plan_;
  const Environment environment_;
  const std::string run_dir_;
  const std::string run_id_;
  const int life_;
  const int64_t verified_;
  const Hooks hooks_;
  std::map<std::string, std::string> sources_, base_;
  HostCopies copies_;
  CheckpointCounters counters_;  // of the one being copied
  ManifestNotes notes_;          // the same
  double waited_ = 0;            // seconds that training waited for the one before it
  c10::intrusive_ptr<c10d::Store> store_;

  int64_t published_ = 0;       // the step of the last one; rank 0 of several
  bool tidied_ = false;         // what earlier lives left is removed
  std::set<std::string> left_;  // folders that were not removed, or not wholly, as the log says

  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;  // a copy waits for the thread
  bool busy_ = false;     // a copy waits, or is being written
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace planwright::executor
