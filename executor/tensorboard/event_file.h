// What TensorBoard shows of a run: RUN/tensorboard/events.out.tfevents.LIFE.HOST, with the scalars of each step under
// the names that this field uses (docs/training/step.md#tensorboard). Each life of a run writes a file of its own.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "executor/telemetry/step_log.h"
#include "planner/plan/plan.h"

namespace planwright::tensorboard {
class Event;
class Summary;
}  // namespace planwright::tensorboard

namespace planwright::executor {

class EventFile {
 public:
  // Keeps a reference to the plan.
  EventFile(const Plan& plan, std::string run_dir, int life, std::string host);
  EventFile(const EventFile&) = delete;
  ~EventFile();

  // Makes the file, before the first step of this life. TensorBoard then forgets what earlier files say of the steps
  // after `steps_done`, which are done again. It forgets too much of the curves over samples, so their points are
  // written again, from RUN/metrics.jsonl. ResourceExhausted if a file cannot be written or read.
  absl::Status Begin(int64_t steps_done);
  // Appends the scalars of a step or of an evaluation; they are in the file when Write returns. ResourceExhausted if
  // they cannot be written.
  absl::Status Write(const StepRecord& record);
  absl::Status WriteEvaluation(const EvaluationRecord& record);
  // After the last Write. ResourceExhausted if what was written had no room.
  absl::Status Close();

 private:
  absl::Status Append(tensorboard::Event& event);
  absl::Status WriteSamplesAgain(int64_t steps_done);
  absl::Status CannotWrite() const;

  const Plan& plan_;
  const std::string run_dir_, path_;
  std::FILE* file_ = nullptr;
};

// A record of a TFRecord file: length, checksum of the length, bytes, checksum of the bytes; numbers are
// little-endian. The format is that of tensorflow/core/lib/io/record_writer.h.
std::string TfRecord(std::string_view bytes);
// CRC-32C (Castagnoli, RFC 3720).
uint32_t Crc32c(std::string_view bytes);

}  // namespace planwright::executor
