#include "planner/run/outcome/outcome_text.h"

#include "absl/strings/str_format.h"
#include "planner/base/files/exit_status.h"

namespace planwright {

std::string SlowRankText(const SlowRank& slow) {
  const std::string times = slow.median > 0 ? absl::StrFormat("%.1f times", slow.seconds / slow.median) : "far above";
  return absl::StrFormat("rank %d (%s) is slow: it computed %.3f s a step, %s the median of its role, in steps %d-%d",
                         slow.rank, slow.role, slow.seconds, times, slow.first_step, slow.last_step);
}

std::string OutcomeText(const Outcome& outcome) {
  std::string notes;
  for (const SlowRank& one : outcome.slow) notes += "note: " + SlowRankText(one) + "\n";
  for (const std::string& line : VariablesThatDiffer(outcome.environment)) notes += "note: environment: " + line + "\n";
  if (!outcome.failure) {
    // Of no rank: files that could not be written, or ranks that could not be started.
    const bool error = outcome.exit_code == kExitStorage || outcome.exit_code == kExitUsage;
    return notes + (error ? "error: " : "") + outcome.cause + "\n";
  }
  const Failure& failure = *outcome.failure;
  std::string text = "error: " + outcome.cause + " on " + failure.host + "\n";
  if (!failure.message.empty()) text += "  " + failure.message + "\n";
  text +=
      "  at " + (failure.instruction.empty() ? "start-up, before its first instruction" : failure.instruction) + "\n";
  if (!failure.recipe_line.empty()) text += "  from " + failure.recipe_line + "\n";
  if (outcome.exit_code == kExitDevice && !failure.last_done.empty())
    text += "  its device is known to have done " + failure.last_done + "\n";
  for (const std::string& other : failure.others) text += "  " + other + "\n";
  for (const LastLines& file : failure.last_lines) {
    text += "  last lines of " + file.file + ":\n";
    for (const std::string& line : file.lines) text += "    " + line + "\n";
  }
  return notes + text;
}

}  // namespace planwright
