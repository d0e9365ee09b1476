#include "planner/wire/records/trial_verdict.h"

#include <algorithm>

#include "planner/base/json/json_fields.h"

namespace planwright {

using Verdict = TrialLine::Verdict;

bool TrialVerdict::passed() const {
  return std::none_of(lines.begin(), lines.end(), [](const TrialLine& line) { return line.verdict == Verdict::kFail; });
}

const char* VerdictWord(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass: return "PASS";
    case Verdict::kFail: return "FAIL";
    case Verdict::kOpen: return "OPEN";
  }
  return "";
}

nlohmann::ordered_json TrialVerdictJson(const TrialVerdict& trial) {
  nlohmann::ordered_json json = {
      {"passed", trial.passed()}, {"first_step_seconds", nullptr}, {"lines", nlohmann::ordered_json::array()}};
  if (const auto& first = trial.first_step) {
    json["first_step_seconds"] = first->all();
    json["first_step"] = {{"agents", first->agents}, {"start", first->start}, {"step", first->step}};
  }
  for (const TrialLine& line : trial.lines) {
    nlohmann::ordered_json one = {{"verdict", VerdictWord(line.verdict)}, {"what", line.what}, {"text", line.text}};
    if (!line.mend.empty()) one["mend"] = line.mend;
    json["lines"].push_back(std::move(one));
  }
  return json;
}

std::optional<TrialVerdict> TrialVerdictFrom(const nlohmann::json& json) {
  if (!json.is_object() || !FieldOf(json, "lines").is_array()) return std::nullopt;
  TrialVerdict trial;
  if (const nlohmann::json& first = FieldOf(json, "first_step"); first.is_object()) {
    const auto part = [&](const char* name) { return NumberOf(first, name).value_or(0); };
    trial.first_step = FirstStep{.agents = part("agents"), .start = part("start"), .step = part("step")};
  }
  for (const nlohmann::json& line : FieldOf(json, "lines")) {
    if (!line.is_object()) continue;
    const std::string word = TextOf(line, "verdict");
    Verdict verdict = Verdict::kOpen;
    for (Verdict one : {Verdict::kPass, Verdict::kFail}) verdict = word == VerdictWord(one) ? one : verdict;
    trial.lines.push_back({verdict, TextOf(line, "what"), TextOf(line, "text"), TextOf(line, "mend")});
  }
  return trial;
}

}  // namespace planwright
