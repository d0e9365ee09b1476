#include "executor/telemetry/step_log.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/run_files/file_io.h"
#include "planner/run_files/readable.h"

namespace planwright::executor {
namespace {

std::string Number(double value) { return std::isfinite(value) ? absl::StrFormat("%.17g", value) : "null"; }
std::string Number(const std::optional<double>& value) { return value ? Number(*value) : "null"; }

// {"language": 1.5, ...}
template <typename NumbersByName>
std::string Numbers(const NumbersByName& numbers) {
  std::string text;
  for (const auto& [name, number] : numbers)
    absl::StrAppend(&text, text.empty() ? "" : ", ", nlohmann::json(name).dump(), ": ", Number(number));
  return "{" + text + "}";
}

std::string SpeedJson(const StepSpeed& speed) {
  return absl::StrCat("{\"tokens_per_second_per_rank\": ", Number(speed.tokens),
                      ", \"teraflops_per_rank\": ", Number(speed.teraflops), ", \"mfu\": ", Number(speed.mfu),
                      ", \"seconds_left\": ", Number(speed.seconds_left), "}");
}

std::string SpeedText(const StepRecord& record) {
  const StepSpeed& speed = record.speed;
  std::string text =
      absl::StrFormat("  %.*f tok/s/%s", speed.tokens < 99.95 ? 1 : 0, speed.tokens, record.memory ? "GPU" : "rank");
  if (speed.mfu) absl::StrAppendFormat(&text, "  MFU %.1f %%", 100 * *speed.mfu);
  if (speed.seconds_left > 0) absl::StrAppend(&text, "  left ", DurationText(speed.seconds_left));
  return text;
}

std::string MemoryJson(const std::optional<DeviceMemory>& memory) {
  if (!memory) return "";
  return absl::StrCat(", \"device_memory\": {\"tensors_peak\": ", memory->tensors_peak,
                      ", \"reserved_peak\": ", memory->reserved_peak, ", \"used\": ", memory->used, "}");
}

absl::Status AppendTo(const std::string& path, const std::string& text) {
  if (text.empty()) return absl::OkStatus();
  const absl::StatusOr<int> fd = OpenPlainFile(path, O_WRONLY | O_APPEND | O_CREAT);
  if (!fd.ok()) return absl::ResourceExhaustedError(fd.status().message());
  std::FILE* file = fdopen(*fd, "a");
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if ((file == nullptr || std::fclose(file) == 0) && written) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(written ? errno : error)));
}

}  // namespace

std::string StepJson(const StepRecord& record) {
  return absl::StrCat(
      "{\"step\": ", record.step, ", \"consumed_samples\": ", record.consumed_samples,
      ", \"loss\": ", Number(record.loss), ", \"grad_norm\": ", Number(record.grad_norm),
      ", \"module_grad_norms\": ", Numbers(record.module_grad_norms),
      ", \"learning_rate\": ", Number(record.learning_rate), ", \"step_seconds\": ", Number(record.step_seconds),
      ", \"pace\": ", SpeedJson(record.speed), ", \"skipped\": ", record.skipped ? "true" : "false",
      ", \"routing\": \"", absl::StrFormat("%016x", record.routing), "\", \"aux_loss\": ", Number(record.aux_loss),
      ", \"bridge_mean_square\": ", Numbers(record.bridge_mean_squares), MemoryJson(record.memory), "}");
}

std::string StepLine(const StepRecord& record, int64_t steps) {
  std::string line =
      absl::StrFormat("step %d/%d  samples %d  loss %s  grad norm %.4g", record.step, steps, record.consumed_samples,
                      record.loss ? absl::StrFormat("%.6f", *record.loss) : "-", record.grad_norm);
  if (!record.bridge_mean_squares.empty()) absl::StrAppend(&line, "  rows");
  for (const auto& [bridge, square] : record.bridge_mean_squares)
    absl::StrAppend(&line, " ", square ? absl::StrFormat("%.4g", *square) : "-");
  absl::StrAppendFormat(&line, "  lr %.3e  %.3f s", record.learning_rate, record.step_seconds);
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
  log->path_ = run_dir + "/metrics.jsonl";
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

absl::Status StepLog::KeepUpTo(int64_t samples, const std::string& dropped) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path_);
  if (!text.ok()) return absl::ResourceExhaustedError(text.status().message());
  std::string kept, again;
  for (absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const auto record = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    const auto consumed = record.is_object() ? record.find("consumed_samples") : record.end();
    if (consumed == record.end() || !consumed->is_number_integer()) continue;
    absl::StrAppend(consumed->get<int64_t>() > samples ? &again : &kept, line, "\n");
  }
  // Before they are gone here. If the rank ends between the two, they are dropped twice, and readers see that.
  if (absl::Status status = AppendTo(dropped, again); !status.ok()) return status;
  if (absl::Status status = Close(); !status.ok()) return status;
  // By a new file: if a replaced life still writes the old one, that is seen by nobody.
  if (absl::Status status = WriteFileAtomically(path_, kept); !status.ok())
    return absl::ResourceExhaustedError(status.message());
  return Append();
}

StepLog::~StepLog() {
  if (file_ != nullptr) std::fclose(file_);
}

absl::Status StepLog::Write(const StepRecord& record) {
  const std::string line = StepJson(record) + "\n";
  const bool written = std::fwrite(line.data(), 1, line.size(), file_) == line.size() && std::fflush(file_) == 0;
  return written ? absl::OkStatus() : CannotWrite();
}

absl::Status StepLog::Close() {
  return std::fclose(std::exchange(file_, nullptr)) == 0 ? absl::OkStatus() : CannotWrite();
}

}  // namespace planwright::executor
