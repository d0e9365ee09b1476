#include "planner/wire/records/step_record.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/json/json_fields.h"
#include "planner/base/json/json_text.h"
#include "planner/wire/records/evaluation_record.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

std::string Number(double value) { return std::isfinite(value) ? absl::StrFormat("%.17g", value) : "null"; }
std::string Number(const std::optional<double>& value) { return value ? Number(*value) : "null"; }

// {"language": 1.5, ...}
template <typename NumbersByName>
std::string Numbers(const NumbersByName& numbers) {
  std::string text;
  for (const auto& [name, number] : numbers)
    absl::StrAppend(&text, text.empty() ? "" : ", ", JsonText(Json(name)), ": ", Number(number));
  return "{" + text + "}";
}

std::string SpeedJson(const StepSpeed& speed) {
  return absl::StrCat("{\"tokens_per_second_per_rank\": ", Number(speed.tokens),
                      ", \"teraflops_per_rank\": ", Number(speed.teraflops), ", \"mfu\": ", Number(speed.mfu),
                      ", \"seconds_left\": ", Number(speed.seconds_left),
                      ", \"data_wait_seconds\": ", Number(speed.data_wait), "}");
}

std::string MemoryJson(const std::optional<DeviceMemory>& memory) {
  if (!memory) return "";
  return absl::StrCat(", \"device_memory\": {\"tensors_peak\": ", memory->tensors_peak,
                      ", \"reserved_peak\": ", memory->reserved_peak, ", \"used\": ", memory->used, "}");
}

std::string RunJson(const StepRecord& record) {
  return absl::StrCat(record.run_id.empty() ? "" : absl::StrCat(", \"run_id\": ", JsonText(Json(record.run_id))),
                      record.life == 0 ? "" : absl::StrCat(", \"life\": ", record.life));
}

StepSpeed SpeedFrom(const Json& json) {
  return {.tokens = NumberOrNan(json, "tokens_per_second_per_rank"),
          .teraflops = NumberOrNan(json, "teraflops_per_rank"),
          .mfu = NumberOf(json, "mfu"),
          .seconds_left = NumberOrNan(json, "seconds_left"),
          .data_wait = NumberOf(json, "data_wait_seconds")};
}

// By name; null, and what is no number, is nullopt.
std::vector<std::pair<std::string, std::optional<double>>> NumbersFrom(const Json& json) {
  std::vector<std::pair<std::string, std::optional<double>>> numbers;
  if (!json.is_object()) return numbers;
  for (const auto& [name, number] : json.items())
    numbers.emplace_back(name, number.is_number() ? std::optional(number.get<double>()) : std::nullopt);
  return numbers;
}

DeviceMemory MemoryFrom(const Json& json) {
  const auto bytes = [&](const char* key) { return IntegerOf(json, key, 0, kLargestCount).value_or(0); };
  return {bytes("tensors_peak"), bytes("reserved_peak"), bytes("used")};
}

}  // namespace

std::string StepsPath(const std::string& run_dir) { return run_dir + "/metrics.jsonl"; }

std::string StepJson(const StepRecord& record) {
  return absl::StrCat(
      "{\"step\": ", record.step, ", \"consumed_samples\": ", record.consumed_samples,
      ", \"loss\": ", Number(record.loss), ", \"grad_norm\": ", Number(record.grad_norm),
      ", \"module_grad_norms\": ", Numbers(record.module_grad_norms),
      ", \"learning_rate\": ", Number(record.learning_rate), ", \"step_seconds\": ", Number(record.step_seconds),
      ", \"pace\": ", SpeedJson(record.speed), ", \"skipped\": ", record.skipped ? "true" : "false",
      ", \"routing\": \"", absl::StrFormat("%016x", record.routing), "\", \"aux_loss\": ", Number(record.aux_loss),
      ", \"bridge_mean_square\": ", Numbers(record.bridge_mean_squares),
      record.source_losses.empty() ? "" : absl::StrCat(", \"source_loss\": ", Numbers(record.source_losses)),
      MemoryJson(record.memory), RunJson(record), "}");
}

std::optional<StepRecord> ReadStepRecord(std::string_view line) {
  // What is no object need not be parsed: a file may have millions of such lines.
  if (const size_t begin = line.find_first_not_of(" \t\r"); begin == line.npos || line[begin] != '{')
    return std::nullopt;
  const Json json = ParseJson(line, kStepLineJson).value_or(Json());
  if (!json.is_object() || json.contains("evaluation")) return std::nullopt;
  const std::optional<int64_t> step = IntegerOf(json, "step", 1, kLargestCount),
                               samples = IntegerOf(json, "consumed_samples", 1, kLargestCount);
  if (!step || !samples) return std::nullopt;
  StepRecord record;
  record.step = *step, record.consumed_samples = *samples;
  record.loss = NumberOf(json, "loss");
  record.grad_norm = NumberOrNan(json, "grad_norm");
  record.learning_rate = NumberOrNan(json, "learning_rate");
  record.step_seconds = NumberOrNan(json, "step_seconds");
  if (const Json& speed = FieldOf(json, "pace"); speed.is_object()) record.speed = SpeedFrom(speed);
  record.skipped = FieldOf(json, "skipped") == true;
  const std::string routing = TextOf(json, "routing");
  std::from_chars(routing.data(), routing.data() + routing.size(), record.routing, 16);
  record.aux_loss = NumberOf(json, "aux_loss");
  if (const Json& norms = FieldOf(json, "module_grad_norms"); norms.is_object()) {
    for (const auto& [name, norm] : norms.items())
      record.module_grad_norms.emplace_back(name, norm.is_number() ? norm.get<double>() : std::nan(""));
  }
  record.bridge_mean_squares = NumbersFrom(FieldOf(json, "bridge_mean_square"));
  record.source_losses = NumbersFrom(FieldOf(json, "source_loss"));
  if (const Json& memory = FieldOf(json, "device_memory"); memory.is_object()) record.memory = MemoryFrom(memory);
  record.run_id = TextOf(json, "run_id");
  record.life = static_cast<int>(IntegerOf(json, "life", 1, kLargestRank).value_or(0));
  return record;
}

std::optional<RecordPlace> PlaceOfRecord(std::string_view line) {
  if (const std::optional<StepRecord> step = ReadStepRecord(line))
    return RecordPlace{step->consumed_samples, step->run_id, step->life};
  if (const std::optional<EvaluationRecord> evaluation = ReadEvaluationRecord(line))
    return RecordPlace{evaluation->consumed_samples, evaluation->run_id, evaluation->life};
  return std::nullopt;
}

absl::StatusOr<KeptSteps> FindKeptSteps(LineFile& file, int64_t samples) {
  for (int64_t end = file.bytes(); end > 0;) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = file.Before(end);
    if (!line.ok()) return line.status();
    std::optional<RecordPlace> of_line = PlaceOfRecord((*line)->text);
    if (of_line && of_line->samples <= samples) return KeptSteps{end, (*line)->whole, *std::move(of_line)};
    end = (*line)->begin;
  }
  return KeptSteps{};
}

}  // namespace planwright
