// Writes the record of each step (planner/wire/records/step_record.h), as a JSON object and as a line for people.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "planner/base/files/line_file.h"
#include "planner/wire/records/evaluation_record.h"
#include "planner/wire/records/step_record.h"

namespace planwright::executor {

// "step 12/20  samples 96  loss 4.123400  grad norm 0.512  rows 1.03  lr 1.200e-03  0.310 s  9685 tok/s/GPU  MFU 41.3 %
// left 2.48 s". rows: the mean square of each bridge, in recipe order. On CPUs it is tok/s/rank, without MFU. If
// data instructions waited for samples for 1 % of the step or more, "0.310 s (0.012 s for data)".
std::string StepLine(const StepRecord& record, int64_t steps);

class StepLog {
 public:
  // Opens RUN/metrics.jsonl to append. ResourceExhausted if that fails.
  static absl::Status Open(const std::string& run_dir, std::unique_ptr<StepLog>& log);
  // The run that the records are of (planner/state/checkpoint/run_id.h), and its life; without them they say none.
  // Before the first.
  void SetRun(std::string run_id, int life) { run_id_ = std::move(run_id), life_ = life; }
  ~StepLog();
  // Moves the records of steps and evaluations after `samples` consumed samples to the end of the file `dropped`: a run
  // that resumes does these steps again. A last line that was cut off goes. What it reads and holds in memory does not
  // depend on the size of the file. Returns the samples of the last record that stays; 0: none does. InvalidArgument,
  // and nothing is changed, if the file is of another run; ResourceExhausted if a file cannot be read or written.
  absl::StatusOr<int64_t> KeepUpTo(int64_t samples, const std::string& dropped);
  // Appends one line; it is in the file when Write returns. ResourceExhausted if it cannot be written.
  absl::Status Write(const StepRecord& record);
  absl::Status WriteEvaluation(const EvaluationRecord& record);
  // The newest evaluation of the file; nullopt: NewestEvaluation finds none. ResourceExhausted if it cannot be read.
  absl::StatusOr<std::optional<EvaluationRecord>> LastEvaluation() const;
  // After the last Write. Some file systems (NFS) tell only now that there was no room: ResourceExhausted.
  absl::Status Close();

 private:
  absl::Status Append();
  absl::Status WriteLine(const std::string& json);
  absl::Status CannotWrite() const;
  absl::Status CheckOwn(const std::string& run_id) const;
  absl::Status Drop(LineFile& file, int64_t from, const std::string& dropped) const;

  std::string path_, run_id_;
  int life_ = 0;
  std::FILE* file_ = nullptr;
};

}  // namespace planwright::executor
