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
  std::string what;  // "start", "files", "memory", "step", "loss", "time", "links", "end"
  std::string text;  // what was found, beside what was expected
  std::string mend;  // what to do; of a kFail
  bool operator==(const TrialLine&) const = default;
};

// Seconds from when the nodes were there until the first step was done.
struct FirstStep {
  double agents = 0;  // until ranks were started: agents began and met the head
  double start = 0;   // until rank 0 was ready
  double step = 0;
  double all() const { return agents + start + step; }
  bool operator==(const FirstStep&) const = default;
};

struct TrialVerdict {
  std::vector<TrialLine> lines;         // in the order of the checks
  std::optional<FirstStep> first_step;  // nullopt: it was not done

  bool passed() const;  // no line is kFail
  bool operator==(const TrialVerdict&) const = default;
};

// "PASS", "FAIL", "OPEN"
const char* VerdictWord(TrialLine::Verdict verdict);

nlohmann::ordered_json TrialVerdictJson(const TrialVerdict& trial);
// What TrialVerdictJson wrote; nullopt if it is no object with a list of lines.
std::optional<TrialVerdict> TrialVerdictFrom(const nlohmann::json& json);

}  // namespace planwright
