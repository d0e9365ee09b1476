#include "executor/telemetry/step_log.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/base/files/readable.h"

namespace planwright::executor {
namespace {

constexpr double kWaitToTell = 0.01;  // of a step

std::string SpeedText(const StepRecord& record) {
  const StepSpeed& speed = record.speed;
  std::string text =
      absl::StrFormat("  %.*f tok/s/%s", speed.tokens < 99.95 ? 1 : 0, speed.tokens, record.memory ? "GPU" : "rank");
  if (speed.mfu) absl::StrAppendFormat(&text, "  MFU %.1f %%", 100 * *speed.mfu);
  if (speed.seconds_left > 0) absl::StrAppend(&text, "  left ", DurationText(speed.seconds_left));
  return text;
}

// Appends lines to a file that is made with the first one.
class LinesAtTheEnd {
 public:
  explicit LinesAtTheEnd(std::string path) : path_(std::move(path)) {}
  LinesAtTheEnd(const LinesAtTheEnd&) = delete;
  ~LinesAtTheEnd() {
    if (file_ != nullptr) std::fclose(file_);
  }

  absl::Status Add(std::string_view line) {
    if (file_ == nullptr) {
      const absl::StatusOr<int> fd = OpenPlainFile(path_, O_WRONLY | O_APPEND | O_CREAT);
      if (!fd.ok()) return absl::ResourceExhaustedError(fd.status().message());
      if ((file_ = fdopen(*fd, "a")) == nullptr) return CannotWrite();
    }
    const bool good = std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fputc('\n', file_) == '\n';
    return good ? absl::OkStatus() : CannotWrite();
  }
  absl::Status Close() {
    return file_ == nullptr || std::fclose(std::exchange(file_, nullptr)) == 0 ? absl::OkStatus() : CannotWrite();
  }

 private:
  absl::Status CannotWrite() const {
    return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path_, ": ", std::strerror(errno)));
  }

  const std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace

std::string StepLine(const StepRecord& record, int64_t steps) {
  std::string line =
      absl::StrFormat("step %d/%d  samples %d  loss %s  grad norm %.4g", record.step, steps, record.consumed_samples,
                      record.loss ? absl::StrFormat("%.6f", *record.loss) : "-", record.grad_norm);
  if (!record.bridge_mean_squares.empty()) absl::StrAppend(&line, "  rows");
  for (const auto& [bridge, square] : record.bridge_mean_squares)
    absl::StrAppend(&line, " ", square ? absl::StrFormat("%.4g", *square) : "-");
  absl::StrAppendFormat(&line, "  lr %.3e  %.3f s", record.learning_rate, record.step_seconds);
  // Of a step that reading does not hold up nobody needs to know it.
  if (record.speed.data_wait.value_or(0) >= kWaitToTell * record.step_seconds && record.speed.data_wait > 0.0)
    absl::StrAppendFormat(&line, " (%.3f s for data)", *record.speed.data_wait);
  absl::StrAppend(&line, SpeedText(record));
  if (record.skipped) {
    absl::StrAppend(&line, "  SKIPPED, not finite:");
    for (const auto& [module, norm] : record.module_grad_norms) {
      if (!std::isfinite(norm)) absl::StrAppend(&line, " ", module);
    }
  }
  return line;
}

absl::Status StepLog::Open(const std::string& run_dir, std::unique_ptr<StepLog>& log) {
  log = std::make_unique<StepLog>();
  log->path_ = StepsPath(run_dir);
  return log->Append();
}

absl::Status StepLog::Append() {
  const absl::StatusOr<int> fd = OpenPlainFile(path_, O_WRONLY | O_APPEND | O_CREAT);
  if (!fd.ok()) return absl::ResourceExhaustedError(fd.status().message());
  file_ = fdopen(*fd, "a");
  if (file_ != nullptr) return absl::OkStatus();
  close(*fd);
  return CannotWrite();
}

absl::Status StepLog::CannotWrite() const {
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path_, ": ", std::strerror(errno)));
}

absl::Status StepLog::CheckOwn(const std::string& run_id) const {
  if (run_id.empty() || run_id_.empty() || run_id == run_id_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path_, " has records of run ", run_id, ", and this is run ", run_id_,
                                                 ": move it away, and bring this run's own back if there is one"));
}

// Adds the records from this offset on to `dropped`.
absl::Status StepLog::Drop(LineFile& file, int64_t from, const std::string& dropped) const {
  LinesAtTheEnd again(dropped);
  for (;;) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = file.At(from);
    if (!line.ok()) return absl::ResourceExhaustedError(line.status().message());
    if (!*line) return again.Close();
    if (const std::optional<RecordPlace> place = PlaceOfRecord((*line)->text)) {
      if (absl::Status own = CheckOwn(place->run_id); !own.ok()) return own;
      if (absl::Status status = again.Add((*line)->text); !status.ok()) return status;
    }
    from = (*line)->end;
  }
}

absl::StatusOr<int64_t> StepLog::KeepUpTo(int64_t samples, const std::string& dropped) {
  absl::StatusOr<LineFile> file = LineFile::Open(path_);
  if (!file.ok()) return absl::ResourceExhaustedError(file.status().message());
  const absl::StatusOr<KeptSteps> kept = FindKeptSteps(*file, samples);
  if (!kept.ok()) return absl::ResourceExhaustedError(kept.status().message());
  // A file of two runs begins with the one or ends with the other.
  const absl::StatusOr<std::optional<LineFile::Line>> first = file->At(0);
  const std::optional<RecordPlace> begin = first.ok() && *first ? PlaceOfRecord((*first)->text) : std::nullopt;
  for (const std::string& run_id : {begin ? begin->run_id : "", kept->last.run_id}) {
    if (absl::Status own = CheckOwn(run_id); !own.ok()) return own;
  }
  // Before they are gone here. If the rank ends between the two, they are dropped twice, and readers see that.
  if (absl::Status status = Drop(*file, kept->bytes, dropped); !status.ok()) return status;
  if (absl::Status status = Close(); !status.ok()) return status;
  // By a new file: if a replaced life still writes the old one, that is seen by nobody.
  if (absl::Status status = CutFileAtomically(path_, kept->bytes, kept->whole ? "" : "\n"); !status.ok())
    return absl::ResourceExhaustedError(status.message());
  if (absl::Status status = Append(); !status.ok()) return status;
  return kept->last.samples;
}

absl::StatusOr<std::optional<EvaluationRecord>> StepLog::LastEvaluation() const {
  absl::StatusOr<LineFile> file = LineFile::Open(path_);
  if (!file.ok()) return absl::ResourceExhaustedError(file.status().message());
  absl::StatusOr<std::optional<EvaluationRecord>> found = NewestEvaluation(*file);
  if (!found.ok()) return absl::ResourceExhaustedError(found.status().message());
  return found;
}

StepLog::~StepLog() {
  if (file_ != nullptr) std::fclose(file_);
}

absl::Status StepLog::Write(const StepRecord& record) {
  StepRecord own = record;
  own.run_id = run_id_, own.life = life_;
  return WriteLine(StepJson(own));
}

absl::Status StepLog::WriteEvaluation(const EvaluationRecord& record) {
  EvaluationRecord own = record;
  own.run_id = run_id_, own.life = life_;
  return WriteLine(EvaluationJson(own));
}

absl::Status StepLog::WriteLine(const std::string& json) {
  const std::string line = json + "\n";
  const bool written = std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fflush(file_) == 0;
  return written ? absl::OkStatus() : CannotWrite();
}

absl::Status StepLog::Close() {
  return std::fclose(std::exchange(file_, nullptr)) == 0 ? absl::OkStatus() : CannotWrite();
}

}  // namespace planwright::executor
