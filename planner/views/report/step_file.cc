#include "planner/views/report/step_file.h"

#include <algorithm>
#include <cmath>

#include "planner/base/files/line_file.h"
#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

constexpr double kLargest = 1e300;  // differences of such numbers are finite

std::optional<double> Finite(const std::optional<double>& value) {
  return value && std::abs(*value) < kLargest ? value : std::nullopt;
}

StepPoint PointOf(const StepRecord& record) {
  StepPoint point{.step = record.step,
                  .samples = record.consumed_samples,
                  .loss = Finite(record.loss),
                  .grad_norm = Finite(record.grad_norm),
                  .learning_rate = Finite(record.learning_rate),
                  .seconds = std::max(0.0, Finite(record.step_seconds).value_or(0)),
                  .data_wait = Finite(record.speed.data_wait),
                  .skipped = record.skipped,
                  .source_losses = record.source_losses};
  for (auto& [source, loss] : point.source_losses) loss = Finite(loss);
  return point;
}

}  // namespace

absl::StatusOr<StepFile> ReadSteps(const std::string& path, const std::string& run_id, const StepVisitor& visit,
                                   int64_t most, const EvaluationVisitor& visit_evaluation) {
  absl::StatusOr<LineFile> lines = LineFile::Open(path);
  if (!lines.ok()) return lines.status();
  StepFile file;
  int64_t number = 0, samples = 0;
  std::optional<int64_t> evaluated;  // samples of the last evaluation
  // Whether a record is of another run.
  const auto passed = [&](const std::string& of) {
    file.unnamed += of.empty();
    if (of.empty() || run_id.empty() || of == run_id) return false;
    if (file.of_another++ == 0) file.another = of;
    return true;
  };
  int64_t at = most == 0 || lines->bytes() <= most ? 0 : lines->bytes() - most;
  for (bool first = true;; first = false) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = first ? lines->From(at) : lines->At(at);
    if (!line.ok()) return line.status();
    if (!*line) return file;
    if (!(*line)->whole) {
      file.cut_off = true;
      return file;
    }
    at = (*line)->end;
    ++number;
    const std::optional<StepRecord> record = ReadStepRecord((*line)->text);
    if (record && passed(record->run_id)) continue;
    if (record && record->consumed_samples > samples) {
      samples = record->consumed_samples;
      if (!visit(PointOf(*record))) return file;
      continue;
    }
    const std::optional<EvaluationRecord> evaluation = ReadEvaluationRecord((*line)->text);
    if (evaluation && passed(evaluation->run_id)) continue;
    if (evaluation && evaluation->consumed_samples >= samples &&
        (!evaluated || evaluation->consumed_samples > *evaluated)) {
      evaluated = evaluation->consumed_samples;
      if (visit_evaluation) visit_evaluation(*evaluation);
    } else if (file.unreadable++ == 0) {
      file.first_unreadable = number;
    }
  }
}

}  // namespace planwright
