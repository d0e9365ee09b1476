// What a trial (`plan launch --try`) found: `trial` of outcome.json (docs/trials.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace planwright {

// One check.
struct TrialLine {
  enum class Verdict {
    kPass,
    kFail,
    kOpen,  // it could not be judged; `text` says why
  };
  Verdict verdict = Verdict::kPass;
  std::string what;  // "start", "files", "memory", "loss", "time", "links"
  std::string text;  // what was found, beside what was expected
  std::string mend;  // what to do; of a kFail
  bool operator==(const TrialLine&) const = default;
};

struct TrialVerdict {
  std::vector<TrialLine> lines;  // in the order of the checks
  // Seconds from when the nodes were there until the first step was done; nullopt: it was not.
  std::optional<double> first_step;

  bool passed() const;  // no line is kFail
  bool operator==(const TrialVerdict&) const = default;
};

// "PASS", "FAIL", "OPEN"
const char* VerdictWord(TrialLine::Verdict verdict);

nlohmann::ordered_json TrialVerdictJson(const TrialVerdict& trial);
// What TrialVerdictJson wrote; nullopt if it is no object with a list of lines.
std::optional<TrialVerdict> TrialVerdictFrom(const nlohmann::json& json);

}  // namespace planwright
