#include "planner/run/outcome/cause.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "planner/base/files/exit_status.h"

namespace planwright {
namespace {

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name ? std::string("SIG") + name : "signal " + std::to_string(number);
}

std::string OwnHost() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string RecipeLine(const Plan& plan, int origin) {
  if (origin < 0 || origin >= static_cast<int>(plan.origins.size())) return "";
  const Origin& at = plan.origins[origin];
  return at.file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

// The rank that the others wait for: the one whose device has been longest at an instruction that needs no other rank.
// nullopt if every rank waits for another one.
std::optional<int> RankThatHangs(const Plan& plan, const RecorderSource& read_recorder) {
  std::optional<int> hanging;
  int64_t oldest = INT64_MAX;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    const std::optional<RankPosition> position = read_recorder(rank);
    if (!position || !position->undone) continue;
    const RecordedInstruction& at = *position->undone;
    if (at.state == RecorderState::kWaiting || at.monotonic >= oldest) continue;
    oldest = at.monotonic;
    hanging = rank;
  }
  return hanging;
}

std::string CauseText(const ProcessEnd& end) {
  const std::string who = "rank " + std::to_string(end.child);
  if (end.signal != 0) return who + " was killed by " + SignalName(end.signal);
  const ExitStatusRow* row = FindExitStatus(end.exit_status);
  if (row != nullptr && *row->did != '\0') return who + " " + row->did;
  return who + " ended with exit status " + std::to_string(end.exit_status);
}

// "step 4 > all_reduce x -> y over language.tp": without the calls between, so that more ranks are at the same one.
std::string ShortPathText(const RecordedInstruction& instruction) {
  // The path of an instruction of a role's own list is the list and the index in it: "step 4 17".
  const size_t calls = instruction.path.find(" > "), index = instruction.path.rfind(' ');
  return instruction.path.substr(0, calls != std::string::npos ? calls : index) + " > " + instruction.text;
}

// "rank 3", "ranks 0-2, 5". More than a few runs of numbers are cut off.
std::string RanksText(const std::vector<int>& ranks) {
  constexpr int kMostRuns = 6;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int runs = 0;
  for (size_t i = 0, next; i < ranks.size(); i = next, ++runs) {
    next = i + 1;
    while (next < ranks.size() && ranks[next] == ranks[next - 1] + 1) ++next;
    if (runs == kMostRuns) return text + " and " + std::to_string(ranks.size() - i) + " more";
    text += (runs > 0 ? ", " : "") + std::to_string(ranks[i]);
    if (next - i > 1) text += (next - i > 2 ? "-" : ", ") + std::to_string(ranks[next - 1]);
  }
  return text;
}

// Where a rank was, in words, and whether it waited there for others.
std::pair<bool, std::string> WhereaboutsOf(const std::optional<RankPosition>& position, bool whole_path) {
  if (!position || position->begun == 0) return {false, "had not begun"};
  if (position->done == position->begun)
    return {false, position->state == RecorderState::kDone ? "had ended" : "was between two instructions"};
  if (!position->undone) return {false, "had a device too far behind to tell where"};
  const bool waits = position->undone->state == RecorderState::kWaiting;
  return {waits, (waits ? "waited in " : "was in ") +
                     (whole_path ? PathText(*position->undone) : ShortPathText(*position->undone))};
}

// What all ranks except `rank` were in. `whole_path`: with all calls, which matters where ranks wait for each other.
std::vector<std::string> OthersThan(const Plan& plan, int rank, bool whole_path, const RecorderSource& read_recorder) {
  constexpr size_t kMost = 8;
  std::map<std::pair<bool, std::string>, std::vector<int>> whereabouts;
  for (int other = 0; other < plan.world_size; ++other) {
    if (other != rank) whereabouts[WhereaboutsOf(read_recorder(other), whole_path)].push_back(other);
  }
  std::vector<std::pair<std::pair<bool, std::string>, std::vector<int>>> sorted(whereabouts.begin(), whereabouts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.first, a.second.size()) > std::pair(b.first.first, b.second.size());
  });
  std::vector<std::string> lines;
  size_t left = 0;
  for (const auto& [where, ranks] : sorted) {
    if (lines.size() == kMost) {
      left += ranks.size();
      continue;
    }
    const bool was = ranks.size() > 1 && absl::StartsWith(where.second, "was ");
    lines.push_back(RanksText(ranks) + " " + (was ? "were " + where.second.substr(4) : where.second));
  }
  if (left > 0) lines.push_back(std::to_string(left) + " ranks were elsewhere");
  return lines;
}

// Which position to report. kHost: the instruction that the rank launched last. kDevice: the one its device is at,
// which may be many instructions behind. A broken device and a stopped process tell nothing about the device, so kHost.
enum class Position { kHost, kDevice };

Failure FailureOf(const Plan& plan, int rank, Position which, const RecorderSource& read_recorder,
                  bool all_wait = false) {
  Failure failure{rank, OwnHost()};
  const std::optional<RankPosition> position = read_recorder(rank);
  if (!position) return failure;
  if (!position->host.empty()) failure.host = position->host;
  failure.message = position->message;
  if (position->finished) failure.last_done = PathText(*position->finished);
  if (const auto& at = which == Position::kDevice && position->undone ? position->undone : position->last) {
    failure.instruction = PathText(*at);
    failure.recipe_line = RecipeLine(plan, at->origin);
    failure.others = OthersThan(plan, rank, all_wait, read_recorder);
  }
  return failure;
}

Outcome Stopped(const Plan& plan, int rank, const RecorderSource& read_recorder) {
  return {kExitStopped, CauseText({.child = rank, .exit_status = kExitStopped}),
          FailureOf(plan, rank, Position::kHost, read_recorder)};
}

// `reporter` is the rank whose watchdog ended the wait. The rank that hangs reports nothing itself.
Outcome Hung(const Plan& plan, int reporter, const RecorderSource& read_recorder) {
  const std::optional<int> hanging = RankThatHangs(plan, read_recorder);
  const int named = hanging.value_or(reporter);
  Outcome outcome{
      kExitHang,
      hanging ? "rank " + std::to_string(named) + " hung" : CauseText({.child = named, .exit_status = kExitHang}),
      FailureOf(plan, named, Position::kDevice, read_recorder, /*all_wait=*/!hanging)};
  const std::optional<RankPosition> witness = read_recorder(reporter);
  if (outcome.failure->message.empty() && witness) outcome.failure->message = witness->message;
  return outcome;
}

// The run counts as preempted if every rank that had not finished wrote its checkpoint, or if the request came while
// ranks started, which ends them.
Outcome Interrupted(const Supervision& supervision, bool saved) {
  size_t finished = 0, preempted = 0;
  for (const ProcessEnd& end : supervision.ends) {
    finished += end.signal == 0 && end.exit_status == kExitSuccess;
    preempted += end.signal == 0 && end.exit_status == kExitPreempted;
  }
  const std::string by = SignalName(supervision.interrupted_by);
  const std::string stopped =
      supervision.interrupted_by == SIGINT ? "stopped by Ctrl-C (" + by + ")" : "preempted by " + by;
  const size_t all = supervision.ends.size();
  if (all > 0 && finished == all) return {kExitSuccess, "done"};
  if (supervision.ended_at_start()) return {kExitPreempted, stopped + " while it started: there was nothing to save"};
  if (preempted > 0 && finished + preempted == all) {
    return {kExitPreempted, stopped + (saved ? ", with a checkpoint written"
                                             : ", before it had done a step: there was nothing to save")};
  }
  return {128 + supervision.interrupted_by,
          "interrupted by " + by +
              (supervision.out_of_time ? ", and not all ranks had saved when the job was about to be killed" : "")};
}

Outcome WithoutInterrupt(const Plan& plan, const Supervision& supervision, bool saved,
                         const RecorderSource& read_recorder) {
  const std::optional<ProcessEnd>& cause = supervision.cause;
  const bool waited_in_vain =
      cause && cause->signal == 0 && (cause->exit_status == kExitHang || MayFollowFromAnother(cause->exit_status));
  if (supervision.stopped && supervision.interrupted_by == 0 && (!cause || waited_in_vain))
    return Stopped(plan, *supervision.stopped, read_recorder);
  if (!cause) return supervision.interrupted_by == 0 ? Outcome{kExitSuccess, "done"} : Interrupted(supervision, saved);
  if (cause->signal == 0 && cause->exit_status == kExitHang) return Hung(plan, cause->child, read_recorder);
  const Failure failure = FailureOf(plan, cause->child, Position::kHost, read_recorder);
  const std::string who = "rank " + std::to_string(cause->child);
  if (!cause->unreachable.empty())
    return {kExitNodeLost, "the node of " + who + " is lost: " + cause->unreachable, failure};
  if (cause->signal == SIGKILL && !cause->memory.empty())
    return {kExitHostMemory, who + " was killed by the kernel: host memory ran out in " + cause->memory, failure};
  // For the other ranks, a killed rank is a lost peer.
  return {cause->signal != 0 ? static_cast<int>(kExitPeerLost) : cause->exit_status, CauseText(*cause), failure};
}

}  // namespace

Outcome CauseOf(const Plan& plan, const Supervision& supervision, const RecorderSource& read_recorder, bool saved) {
  Outcome outcome = WithoutInterrupt(plan, supervision, saved, read_recorder);
  outcome.interrupted_by = supervision.interrupted_by;
  return outcome;
}

}  // namespace planwright
