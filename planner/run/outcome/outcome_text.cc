#include "planner/run/outcome/outcome_text.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "planner/base/files/exit_status.h"

namespace planwright {

std::string SlowRankText(const SlowRank& slow) {
  const std::string times = slow.median > 0 ? absl::StrFormat("%.1f times", slow.seconds / slow.median) : "far above";
  return absl::StrFormat("rank %d (%s) is slow: it computed %.3f s a step, %s the median of its role, in steps %d-%d",
                         slow.rank, slow.role, slow.seconds, times, slow.first_step, slow.last_step);
}

namespace {

// What the rank said, without what the lines around it say: who it is, and at which instruction. That is
// "step 3 1 > read a -> b" here, and "step 3 1: read a -> b: " in its own words.
std::string_view WordsOf(const Failure& failure) {
  std::string_view words = failure.message;
  const std::string who = absl::StrFormat("rank %d on %s: ", failure.rank, failure.host);
  if (words.starts_with(who)) words.remove_prefix(who.size());
  const size_t last = failure.instruction.rfind(" > ");
  if (last == std::string::npos) return words;
  const std::string instruction = ": " + failure.instruction.substr(last + 3) + ": ";
  const size_t found = words.substr(0, words.find('\n')).find(instruction);
  if (found != std::string_view::npos) words.remove_prefix(found + instruction.size());
  return words;
}

// Whether a line of a log is one of the message, which has been told.
bool IsOfMessage(std::string_view line, const std::string& message) {
  constexpr size_t kCompared = 500;  // bytes: a long line of a log is cut off
  const std::vector<std::string> lines = absl::StrSplit(message, '\n', absl::SkipEmpty());
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& said) {
    return line.find(said.substr(0, kCompared)) != std::string_view::npos;
  });
}

}  // namespace

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
  if (!failure.message.empty()) text += "  " + std::string(WordsOf(failure)) + "\n";
  text +=
      "  at " + (failure.instruction.empty() ? "start-up, before its first instruction" : failure.instruction) + "\n";
  if (!failure.recipe_line.empty()) text += "  from " + failure.recipe_line + "\n";
  if (outcome.exit_code == kExitDevice && !failure.last_done.empty())
    text += "  its device is known to have done " + failure.last_done + "\n";
  for (const std::string& other : failure.others) text += "  " + other + "\n";
  for (const LastLines& file : failure.last_lines) {
    std::string lines;
    for (const std::string& line : file.lines) {
      if (!IsOfMessage(line, failure.message)) lines += "    " + line + "\n";
    }
    if (!lines.empty()) text += "  last lines of " + file.file + ":\n" + lines;
  }
  return notes + text;
}

}  // namespace planwright
