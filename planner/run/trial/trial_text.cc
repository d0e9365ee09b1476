#include "planner/run/trial/trial_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/readable.h"

namespace planwright {
namespace {

std::string FirstStepText(const FirstStep& first) {
  constexpr double kAim = 60;
  const std::string agents = first.agents > 0 ? absl::StrCat("agents ", DurationText(first.agents), ", ") : "";
  return absl::StrCat("the first step was done ", DurationText(first.all()), " after the nodes were there: ", agents,
                      "ranks ", DurationText(first.start), ", the step ", DurationText(first.step),
                      first.all() <= kAim ? " (the aim: a minute)\n" : " (longer than the aim: a minute)\n");
}

}  // namespace

std::string TrialText(const TrialVerdict& trial) {
  std::string text;
  int failed = 0;
  for (const TrialLine& line : trial.lines) {
    failed += line.verdict == TrialLine::Verdict::kFail ? 1 : 0;
    absl::StrAppend(&text, absl::StrFormat("%s  %-6s  ", VerdictWord(line.verdict), line.what), line.text, "\n");
    if (!line.mend.empty()) absl::StrAppend(&text, "              what to do: ", line.mend, "\n");
  }
  if (trial.first_step) absl::StrAppend(&text, FirstStepText(*trial.first_step));
  if (failed > 0)
    return absl::StrCat(text, "the trial did not pass: ", failed, failed == 1 ? " check" : " checks", " failed\n");
  return absl::StrCat(text, "the trial passed: the same line without --try launches the run\n");
}

}  // namespace planwright
