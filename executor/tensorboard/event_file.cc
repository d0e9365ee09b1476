#include "executor/tensorboard/event_file.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "event.pb.h"
#include "planner/base/files/file_io.h"

namespace planwright::executor {
namespace {

using tensorboard::Event;
using tensorboard::Summary;

// Writers of this version say where a life begins, instead of leaving it to the reader to guess.
constexpr char kFileVersion[] = "brain.Event:2";

double WallTime() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void Add(Summary& summary, const std::string& tag, double value) {
  Summary::Value& added = *summary.add_value();
  added.set_tag(tag);
  added.set_simple_value(static_cast<float>(value));
}
void Add(Summary& summary, const std::string& tag, const std::optional<double>& value) {
  if (value) Add(summary, tag, *value);
}

// The curves that there are over steps and, with this suffix, over samples.
void AddCurves(Summary& summary, const std::string& suffix, const std::optional<double>& loss,
               const std::optional<double>& learning_rate, const std::optional<double>& batch_size,
               const std::optional<double>& grad_norm) {
  Add(summary, "lm loss" + suffix, loss);
  Add(summary, "learning-rate" + suffix, learning_rate);
  Add(summary, "batch-size" + suffix, batch_size);
  Add(summary, "grad-norm" + suffix, grad_norm);
}
constexpr char kOverSamples[] = " vs samples";

// As many points of a curve as are written again, so that a long run resumes as fast as a short one. TensorBoard shows
// a thousand of a curve unless it is asked for more.
constexpr int64_t kMostPointsAgain = 10'000;
constexpr int64_t kChunk = 4096;  // bytes to read at once: single lines are picked

void AddStep(Summary& summary, const StepRecord& record, double batch_size) {
  AddCurves(summary, "", record.loss, record.learning_rate, batch_size, record.grad_norm);
  for (const auto& [module, norm] : record.module_grad_norms) Add(summary, "grad-norm/" + module, norm);
  Add(summary, "iteration-time", record.step_seconds);
  Add(summary, "data-wait", record.speed.data_wait);
  Add(summary, "throughput", record.speed.teraflops);
  Add(summary, "tokens-per-second-per-gpu", record.speed.tokens);
  Add(summary, "mfu", record.speed.mfu);
  Add(summary, "skipped-iterations", record.skipped ? 1 : 0);
  Add(summary, "seq_load_balancing_loss", record.aux_loss);
  for (const auto& [bridge, square] : record.bridge_mean_squares) Add(summary, "bridge-mean-square/" + bridge, square);
  for (const auto& [source, loss] : record.source_losses) Add(summary, "lm loss/" + source, loss);
  if (!record.memory) return;
  Add(summary, "mem-max-allocated-bytes", static_cast<double>(record.memory->tensors_peak));
  Add(summary, "mem-max-reserved-bytes", static_cast<double>(record.memory->reserved_peak));
  Add(summary, "mem-used-bytes", static_cast<double>(record.memory->used));
}

void AppendLittleEndian(std::string& text, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
}

// Checksums of data that has checksums in it would be weak, so stored ones are masked.
uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; }

constexpr std::array<uint32_t, 256> CrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    table[byte] = crc;
  }
  return table;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = CrcTable();
  uint32_t crc = ~uint32_t{0};
  for (char byte : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string TfRecord(std::string_view bytes) {
  std::string record;
  AppendLittleEndian(record, bytes.size(), 8);
  AppendLittleEndian(record, Masked(Crc32c(record)), 4);
  record += bytes;
  AppendLittleEndian(record, Masked(Crc32c(bytes)), 4);
  return record;
}

// The number of the life comes first, as TensorBoard reads files in the order of their names; clocks of two nodes may
// differ.
EventFile::EventFile(const Plan& plan, std::string run_dir, int life, std::string host)
    : plan_(plan), run_dir_(std::move(run_dir)),
      path_(absl::StrFormat("%s/tensorboard/events.out.tfevents.%010d.%s", run_dir_, life, host)) {}

EventFile::~EventFile() {
  if (file_ != nullptr) std::fclose(file_);
}

absl::Status EventFile::CannotWrite() const {
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path_, ": ", std::strerror(errno)));
}

absl::Status EventFile::Begin(int64_t steps_done) {
  if (absl::Status made = MakeDirectories(run_dir_ + "/tensorboard"); !made.ok())
    return absl::ResourceExhaustedError(made.message());
  const absl::StatusOr<int> fd = OpenPlainFile(path_, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC);
  if (!fd.ok()) return absl::ResourceExhaustedError(fd.status().message());
  file_ = fdopen(*fd, "a");
  if (file_ == nullptr) {
    close(*fd);
    return CannotWrite();
  }
  Event version;
  version.set_file_version(kFileVersion);
  if (absl::Status status = Append(version); !status.ok()) return status;
  Event start;
  start.set_step(steps_done + 1);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  if (absl::Status status = Append(start); !status.ok()) return status;
  return WriteSamplesAgain(steps_done);
}

absl::Status EventFile::WriteSamplesAgain(int64_t steps_done) {
  absl::StatusOr<LineFile> file = LineFile::Open(StepsPath(run_dir_), kChunk);
  const auto failed = [](const absl::Status& status) { return absl::ResourceExhaustedError(status.message()); };
  if (!file.ok()) return failed(file.status());
  // An offset that is not in the line before it leads to the next line, so few lines are all read.
  int64_t end = 0, samples_before = 0;  // of the line before
  for (int64_t point = 0; point < kMostPointsAgain; ++point) {
    const auto offset = static_cast<int64_t>(static_cast<__int128>(file->bytes()) * point / kMostPointsAgain);
    absl::StatusOr<std::optional<LineFile::Line>> line = file->From(offset);
    if (!line.ok()) return failed(line.status());
    if (!*line) break;
    if ((*line)->begin < end) continue;
    if ((*line)->begin > end) {
      const absl::StatusOr<std::optional<LineFile::Line>> before = file->Before((*line)->begin);
      if (!before.ok()) return failed(before.status());
      if (const auto place = PlaceOfRecord((*before)->text)) samples_before = place->samples;
      line = file->From(offset);
      if (!line.ok()) return failed(line.status());
    }
    end = (*line)->end;
    const std::optional<StepRecord> record = ReadStepRecord((*line)->text);
    if (!record) continue;
    const int64_t batch_size = record->consumed_samples - std::exchange(samples_before, record->consumed_samples);
    if (record->consumed_samples <= steps_done) continue;  // TensorBoard keeps it: it compares it with steps
    Event event;
    event.set_step(record->consumed_samples);
    AddCurves(*event.mutable_summary(), kOverSamples, record->loss, record->learning_rate,
              static_cast<double>(batch_size), record->grad_norm);
    if (absl::Status status = Append(event); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status EventFile::Write(const StepRecord& record) {
  const auto batch_size = static_cast<double>(plan_.budget.global_samples);
  Event event;
  event.set_step(record.step);
  AddStep(*event.mutable_summary(), record, batch_size);
  if (absl::Status status = Append(event); !status.ok()) return status;
  Event over_samples;
  over_samples.set_step(record.consumed_samples);
  AddCurves(*over_samples.mutable_summary(), kOverSamples, record.loss, record.learning_rate, batch_size,
            record.grad_norm);
  return Append(over_samples);
}

absl::Status EventFile::WriteEvaluation(const EvaluationRecord& record) {
  Event event;
  event.set_step(record.step);
  Summary& summary = *event.mutable_summary();
  for (const EvaluatedSet& set : record.sets) {
    const std::string tag = "lm loss validation/" + set.name;
    Add(summary, tag, set.all.loss);
    if (set.sources.size() < 2) continue;  // the same number again
    for (const auto& [source, mean] : set.sources) Add(summary, tag + "/" + source, mean.loss);
  }
  Add(summary, "validation-time", record.seconds);
  return Append(event);
}

absl::Status EventFile::Append(Event& event) {
  event.set_wall_time(WallTime());
  const std::string record = TfRecord(event.SerializeAsString());
  const bool written = std::fwrite(record.data(), 1, record.size(), file_) == record.size() && std::fflush(file_) == 0;
  return written ? absl::OkStatus() : CannotWrite();
}

absl::Status EventFile::Close() {
  if (file_ == nullptr) return absl::OkStatus();
  return std::fclose(std::exchange(file_, nullptr)) == 0 ? absl::OkStatus() : CannotWrite();
}

}  // namespace planwright::executor
