#include "planner/wire/records/evaluation_record.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "planner/base/json/json_fields.h"
#include "planner/base/json/json_text.h"
#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

std::string MeanJson(const MeanLoss& mean) {
  const bool finite = mean.loss && std::isfinite(*mean.loss);
  return absl::StrCat("\"loss\": ", finite ? absl::StrFormat("%.17g", *mean.loss) : "null",
                      ", \"tokens\": ", mean.tokens);
}

std::string SetJson(const EvaluatedSet& set) {
  std::string sources;
  for (const auto& [name, mean] : set.sources)
    absl::StrAppend(&sources, sources.empty() ? "" : ", ", JsonText(nlohmann::json(name)), ": {", MeanJson(mean), "}");
  return absl::StrCat(
      JsonText(nlohmann::json(set.name)), ": {", MeanJson(set.all), ", \"sources\": {", sources, "}",
      set.samples_digest.empty() ? "" : ", \"samples_digest\": " + JsonText(nlohmann::json(set.samples_digest)), "}");
}

MeanLoss MeanFrom(const nlohmann::json& json) {
  if (!json.is_object()) return {};
  return {.loss = NumberOf(json, "loss"), .tokens = IntegerOf(json, "tokens", 0, kLargestCount).value_or(0)};
}

EvaluatedSet SetFrom(const std::string& name, const nlohmann::json& json) {
  EvaluatedSet set{.name = name, .all = MeanFrom(json), .sources = {}};
  if (!json.is_object()) return set;
  if (const nlohmann::json& sources = FieldOf(json, "sources"); sources.is_object()) {
    for (const auto& [source, mean] : sources.items()) set.sources.emplace_back(source, MeanFrom(mean));
  }
  set.samples_digest = TextOf(json, "samples_digest");
  return set;
}

}  // namespace

std::string EvaluationJson(const EvaluationRecord& record) {
  std::string sets;
  for (const EvaluatedSet& set : record.sets) absl::StrAppend(&sets, sets.empty() ? "" : ", ", SetJson(set));
  return absl::StrCat(
      "{\"step\": ", record.step, ", \"consumed_samples\": ", record.consumed_samples, ", \"evaluation\": {", sets,
      "}, \"evaluation_seconds\": ", std::isfinite(record.seconds) ? absl::StrFormat("%.17g", record.seconds) : "null",
      record.unheard > 0 ? absl::StrFormat(", \"unheard_seconds\": %.6g", record.unheard) : "",
      record.run_id.empty() ? "" : ", \"run_id\": " + JsonText(nlohmann::json(record.run_id)),
      record.life == 0 ? "" : absl::StrCat(", \"life\": ", record.life), "}");
}

std::optional<EvaluationRecord> ReadEvaluationRecord(std::string_view line) {
  // Most lines are steps, and need not be parsed twice.
  if (line.find("\"evaluation\"") == std::string_view::npos) return std::nullopt;
  const nlohmann::json json = ParseJson(line, kStepLineJson).value_or(nlohmann::json());
  if (!json.is_object()) return std::nullopt;
  const std::optional<int64_t> step = IntegerOf(json, "step", 0, kLargestCount),
                               samples = IntegerOf(json, "consumed_samples", 0, kLargestCount);
  const nlohmann::json& sets = FieldOf(json, "evaluation");
  if (!step || !samples || !sets.is_object()) return std::nullopt;
  EvaluationRecord record{.step = *step, .consumed_samples = *samples};
  record.seconds = NumberOf(json, "evaluation_seconds").value_or(0);
  record.unheard = std::max(0.0, NumberOf(json, "unheard_seconds").value_or(0));
  for (const auto& [name, set] : sets.items()) record.sets.push_back(SetFrom(name, set));
  record.run_id = TextOf(json, "run_id");
  record.life = static_cast<int>(IntegerOf(json, "life", 1, kLargestRank).value_or(0));
  return record;
}

absl::StatusOr<std::optional<EvaluationRecord>> NewestEvaluation(LineFile& file) {
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  for (int64_t end = file.bytes(), last = std::max<int64_t>(end - kMostBytes, 0); end > last;) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = file.Before(end, end - last);
    if (!line.ok()) return line.status();
    if (!*line) break;
    if (std::optional<EvaluationRecord> record = ReadEvaluationRecord((*line)->text)) return record;
    end = (*line)->begin;
  }
  return std::nullopt;
}

std::string LossText(const MeanLoss& mean, const absl::FormatSpec<double>& format) {
  if (mean.tokens == 0) return "-";
  return mean.loss && std::isfinite(*mean.loss) ? absl::StrFormat(format, *mean.loss) : "nan";
}

std::string EvaluationLine(const EvaluationRecord& record, int64_t steps) {
  std::string line =
      steps > 0 ? absl::StrFormat("evaluation of step %d/%d", record.step, steps) : std::string("evaluation");
  for (const EvaluatedSet& set : record.sets) {
    absl::StrAppend(&line, "  ", set.name, " ", LossText(set.all, "%.6f"));
    if (set.sources.size() < 2) continue;
    std::string sources;
    for (const auto& [name, mean] : set.sources)
      absl::StrAppend(&sources, sources.empty() ? "" : ", ", name, " ", LossText(mean, "%.6f"));
    absl::StrAppend(&line, " (", sources, ")");
  }
  return absl::StrCat(line, absl::StrFormat("  %.3f s", record.seconds));
}

}  // namespace planwright
