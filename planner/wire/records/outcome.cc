#include "planner/wire/records/outcome.h"

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_fields.h"
#include "planner/base/json/json_text.h"

namespace planwright {
namespace {

nlohmann::ordered_json SlowRankJson(const SlowRank& slow) {
  return {{"rank", slow.rank},
          {"role", slow.role},
          {"first_step", slow.first_step},
          {"last_step", slow.last_step},
          {"step_seconds", slow.seconds},
          {"median_seconds", slow.median}};
}

// nullopt if a field is missing or has another type.
std::optional<SlowRank> SlowRankFrom(const nlohmann::json& json) {
  if (!json.is_object() || !FieldOf(json, "role").is_string()) return std::nullopt;
  const auto rank = IntegerOf(json, "rank", 0, kLargestRank);
  const auto first = IntegerOf(json, "first_step", 0, kLargestCount);
  const auto last = IntegerOf(json, "last_step", 0, kLargestCount);
  const auto seconds = NumberOf(json, "step_seconds"), median = NumberOf(json, "median_seconds");
  if (!rank || !first || !last || !seconds || !median) return std::nullopt;
  return SlowRank{static_cast<int>(*rank), TextOf(json, "role"), *first, *last, *seconds, *median};
}

nlohmann::ordered_json OrNull(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

void AddFailure(const Failure& failure, nlohmann::ordered_json& json) {
  json["rank"] = failure.rank;
  json["host"] = failure.host;
  json["instruction"] = OrNull(failure.instruction);
  json["last_done"] = OrNull(failure.last_done);
  json["recipe_line"] = OrNull(failure.recipe_line);
  json["message"] = OrNull(failure.message);
  if (!failure.others.empty()) json["others"] = failure.others;
  for (const LastLines& file : failure.last_lines)
    json["last_lines"].push_back({{"file", file.file}, {"lines", file.lines}});
}

// nullopt: the run did not fail.
std::optional<Failure> FailureFrom(const nlohmann::json& json) {
  Failure failure{.rank = static_cast<int>(IntegerOf(json, "rank", 0, kLargestRank).value_or(-1)),
                  .host = TextOf(json, "host"),
                  .instruction = TextOf(json, "instruction"),
                  .last_done = TextOf(json, "last_done"),
                  .recipe_line = TextOf(json, "recipe_line"),
                  .message = TextOf(json, "message"),
                  .others = TextsOf(json, "others"),
                  .last_lines = {}};
  for (const nlohmann::json& file : FieldOf(json, "last_lines")) {
    if (file.is_object()) failure.last_lines.push_back({TextOf(file, "file"), TextsOf(file, "lines")});
  }
  return failure == Failure{} ? std::nullopt : std::optional(failure);
}

}  // namespace

std::string OutcomePath(const std::string& run_dir) { return run_dir + "/outcome.json"; }

nlohmann::ordered_json OutcomeJson(const Outcome& outcome) {
  nlohmann::ordered_json json = {{"exit_code", outcome.exit_code}, {"cause", outcome.cause}};
  if (!outcome.run_id.empty()) json["run_id"] = outcome.run_id;
  if (outcome.interrupted_by != 0) json["interrupted_by"] = outcome.interrupted_by;
  if (outcome.profile) json["profile"] = RunProfileJson(*outcome.profile);
  if (outcome.memory) json["memory"] = RunMemoryJson(*outcome.memory);
  if (outcome.trial) json["trial"] = TrialVerdictJson(*outcome.trial);
  for (const SlowRank& slow : outcome.slow) json["slow_ranks"].push_back(SlowRankJson(slow));
  if (outcome.failure) AddFailure(*outcome.failure, json);
  if (!outcome.environment.empty()) json["environment"] = RankVariablesJson(outcome.environment);
  return json;
}

std::string OutcomeFile(const Outcome& outcome) { return JsonText(OutcomeJson(outcome), 1) + "\n"; }

absl::StatusOr<Outcome> ReadOutcome(std::string_view text) {
  const nlohmann::json json = ParseJson(text, kOutcomeJson).value_or(nlohmann::json());
  if (!json.is_object() || !FieldOf(json, "exit_code").is_number_integer())
    return absl::InvalidArgumentError("is not a JSON object with an exit_code");
  Outcome outcome;
  outcome.exit_code = static_cast<int>(IntegerOf(json, "exit_code", 0, 255).value_or(kExitUsage));
  outcome.cause = TextOf(json, "cause");
  outcome.run_id = TextOf(json, "run_id");
  outcome.interrupted_by = static_cast<int>(IntegerOf(json, "interrupted_by", 0, 255).value_or(0));
  outcome.profile = RunProfileFrom(FieldOf(json, "profile"));
  outcome.memory = RunMemoryFrom(FieldOf(json, "memory"));
  outcome.trial = TrialVerdictFrom(FieldOf(json, "trial"));
  for (const nlohmann::json& slow : FieldOf(json, "slow_ranks")) {
    if (std::optional<SlowRank> one = SlowRankFrom(slow)) outcome.slow.push_back(*std::move(one));
  }
  outcome.failure = FailureFrom(json);
  outcome.environment = RankVariablesFrom(FieldOf(json, "environment"));
  return outcome;
}

}  // namespace planwright
