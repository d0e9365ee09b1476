// The record of a step (docs/training/step.md#metrics): one JSON object in RUN/metrics.jsonl, and one line for people.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/telemetry/device_memory.h"
#include "executor/telemetry/step_pace.h"

namespace planwright::executor {

struct StepRecord {
  int64_t step = 0;  // from 1
  int64_t consumed_samples = 0;
  std::optional<double> loss;  // nullopt: no position of the global batch counts in the loss
  double grad_norm = 0;
  std::vector<std::pair<std::string, double>> module_grad_norms;
  double learning_rate = 0;
  double step_seconds = 0;
  StepSpeed speed;
  bool skipped = false;
  // fingerprint of all expert choices (docs/model/mixture_of_experts.md#routing-fingerprint)
  uint64_t routing = 0;
  std::optional<double> aux_loss;  // nullopt: no layer that is trained has experts
  // By bridge ("radio_encoder->language"): the mean square of the rows that crossed it forward; nullopt: there were
  // none.
  std::vector<std::pair<std::string, std::optional<double>>> bridge_mean_squares;
  std::optional<DeviceMemory> memory;  // of rank 0's GPU, when the step had been launched; nullopt: it is a CPU rank
};

// {"step": 1, ...}. Numbers have 17 digits, so that reading gives the same double. JSON has no word for numbers that
// are not finite: they are null.
std::string StepJson(const StepRecord& record);
// "step 12/20  samples 96  loss 4.123400  grad norm 0.512  rows 1.03  lr 1.200e-03  0.310 s  9685 tok/s/GPU  MFU 41.3 %
// left 2.48 s". rows: the mean square of each bridge, in recipe order. On CPUs it is tok/s/rank, without MFU.
std::string StepLine(const StepRecord& record, int64_t steps);

class StepLog {
 public:
  // Opens RUN/metrics.jsonl to append. ResourceExhausted if that fails.
  static absl::Status Open(const std::string& run_dir, std::unique_ptr<StepLog>& log);
  ~StepLog();
  // Moves the records of steps after `samples` consumed samples to the end of the file `dropped`: a run that resumes
  // does these steps again. A last line that was cut off goes. ResourceExhausted if a file cannot be written.
  absl::Status KeepUpTo(int64_t samples, const std::string& dropped);
  // Appends one line; it is in the file when Write returns. ResourceExhausted if it cannot be written.
  absl::Status Write(const StepRecord& record);
  // After the last Write. Some file systems (NFS) tell only now that there was no room: ResourceExhausted.
  absl::Status Close();

 private:
  absl::Status Append();
  absl::Status CannotWrite() const;

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace planwright::executor
