#include "planner/run/trial/trial_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace planwright {

std::string TrialText(const TrialVerdict& trial) {
  std::string text;
  int failed = 0;
  for (const TrialLine& line : trial.lines) {
    failed += line.verdict == TrialLine::Verdict::kFail ? 1 : 0;
    absl::StrAppend(&text, absl::StrFormat("%s  %-6s  ", VerdictWord(line.verdict), line.what), line.text, "\n");
    if (!line.mend.empty()) absl::StrAppend(&text, "              what to do: ", line.mend, "\n");
  }
  if (trial.first_step) {
    constexpr double kAim = 60;
    absl::StrAppend(&text,
                    absl::StrFormat("the first step was done %.1f s after the nodes were there (the aim: %.0f)\n",
                                    *trial.first_step, kAim));
  }
  if (failed > 0)
    return absl::StrCat(text, "the trial did not pass: ", failed, failed == 1 ? " check" : " checks", " failed\n");
  return absl::StrCat(text, "the trial passed: the same line without --try launches the run\n");
}

}  // namespace planwright
