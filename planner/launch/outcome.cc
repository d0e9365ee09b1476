#include "planner/launch/outcome.h"

#include <string.h>
#include <unistd.h>

#include "planner/run_files/exit_status.h"

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
  const Origin& place = plan.origins[origin];
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
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
    if (at.state != RecorderState::kRunning || at.monotonic >= oldest) continue;
    oldest = at.monotonic;
    hanging = rank;
  }
  return hanging;
}

std::string CauseText(const ProcessEnd& end) {
  const std::string who = "rank " + std::to_string(end.child);
  if (end.signal != 0) return who + " was killed by " + SignalName(end.signal);
  switch (end.exit_status) {
    case kExitPeerLost: return who + " lost another rank";
    case kExitNumerics: return who + " stopped because of its numbers";
    case kExitDamaged: return who + " found a damaged checkpoint";
    case kExitPlanMismatch: return who + " has another plan or run";
    case kExitStorage: return who + " could not write the run directory";
    case kExitDevice: return who + " lost its device";
    case kExitCapacity: return who + " got more expert rows than memory is planned for";
    case kExitReplaced: return who + " was replaced by a newer life of the run";
    case kExitInternal: return who + " stopped because of a bug in Planwright";
  }
  return who + " ended with exit status " + std::to_string(end.exit_status);
}

// Which position to report. kHost: the instruction that the rank launched last. kDevice: the one its device is at,
// which may be many instructions behind. A broken device and a stopped process tell nothing about the device, so kHost.
enum class Position { kHost, kDevice };

Failure FailureOf(const Plan& plan, int rank, Position which, const RecorderSource& read_recorder) {
  Failure failure{rank, OwnHost()};
  const std::optional<RankPosition> position = read_recorder(rank);
  if (!position) return failure;
  if (!position->host.empty()) failure.host = position->host;
  failure.message = position->message;
  if (position->finished) failure.last_done = PlaceText(*position->finished);
  if (const auto& at = which == Position::kDevice && position->undone ? position->undone : position->last) {
    failure.instruction = PlaceText(*at);
    failure.recipe_line = RecipeLine(plan, at->origin);
  }
  return failure;
}

// The first ranks that are at another instruction than `rank`, each with its place.
std::vector<std::string> Elsewhere(const Plan& plan, int rank, const RecorderSource& read_recorder) {
  constexpr size_t kMost = 8;
  std::vector<std::string> places;
  const std::optional<RankPosition> waiting = read_recorder(rank);
  for (int other = 0; other < plan.world_size && places.size() < kMost; ++other) {
    const std::optional<RankPosition> position = read_recorder(other);
    const std::string who = "rank " + std::to_string(other);
    if (!position || position->begun == 0) {
      places.push_back(who + " has not begun");
    } else if (position->done == position->begun) {
      places.push_back(who + (position->state == RecorderState::kDone ? " is done" : " is between two instructions"));
    } else if (!position->undone) {
      places.push_back(who + "'s device is too far behind to tell where");
    } else if (!waiting || !waiting->undone || position->undone->step != waiting->undone->step ||
               position->undone->text != waiting->undone->text) {
      places.push_back(who + " is at " + PlaceText(*position->undone));
    }
  }
  return places;
}

Outcome Stopped(const Plan& plan, int rank, const RecorderSource& read_recorder) {
  return {kExitHang, "rank " + std::to_string(rank) + " is stopped (SIGSTOP)",
          FailureOf(plan, rank, Position::kHost, read_recorder)};
}

// `reporter` is the rank whose watchdog ended the wait. The rank that hangs reports nothing itself.
Outcome Hung(const Plan& plan, int reporter, const RecorderSource& read_recorder) {
  const std::optional<int> hanging = RankThatHangs(plan, read_recorder);
  Outcome outcome{
      kExitHang,
      "rank " + std::to_string(hanging.value_or(reporter)) + (hanging ? " hung" : " waited too long for other ranks"),
      FailureOf(plan, hanging.value_or(reporter), Position::kDevice, read_recorder)};
  if (!hanging) outcome.failure->elsewhere = Elsewhere(plan, reporter, read_recorder);
  const std::optional<RankPosition> witness = read_recorder(reporter);
  if (outcome.failure->message.empty() && witness) outcome.failure->message = witness->message;
  return outcome;
}

// The run counts as preempted only if every rank that had not finished wrote its checkpoint.
Outcome Interrupted(const Supervision& supervision) {
  size_t finished = 0, preempted = 0;
  for (const ProcessEnd& end : supervision.ends) {
    finished += end.signal == 0 && end.exit_status == kExitSuccess;
    preempted += end.signal == 0 && end.exit_status == kExitPreempted;
  }
  const std::string by = SignalName(supervision.interrupted_by);
  const size_t all = supervision.ends.size();
  if (all > 0 && finished == all) return {kExitSuccess, "done"};
  if (preempted > 0 && finished + preempted == all)
    return {kExitPreempted, "preempted by " + by + ", with a checkpoint written"};
  return {128 + supervision.interrupted_by, "interrupted by " + by};
}

}  // namespace

Outcome OutcomeOf(const Plan& plan, const Supervision& supervision, const RecorderSource& read_recorder) {
  const std::optional<ProcessEnd>& cause = supervision.cause;
  const bool waited_in_vain =
      cause && cause->signal == 0 && (cause->exit_status == kExitHang || cause->exit_status == kExitPeerLost);
  if (supervision.stopped && supervision.interrupted_by == 0 && (!cause || waited_in_vain))
    return Stopped(plan, *supervision.stopped, read_recorder);
  if (!cause) return supervision.interrupted_by == 0 ? Outcome{kExitSuccess, "done"} : Interrupted(supervision);
  if (cause->signal == 0 && cause->exit_status == kExitHang) return Hung(plan, cause->child, read_recorder);
  // For the other ranks, a killed rank is a lost peer.
  const int exit_code = cause->signal != 0 ? static_cast<int>(kExitPeerLost) : cause->exit_status;
  return {exit_code, CauseText(*cause), FailureOf(plan, cause->child, Position::kHost, read_recorder)};
}

nlohmann::ordered_json OutcomeJson(const Outcome& outcome) {
  nlohmann::ordered_json json = {{"exit_code", outcome.exit_code}, {"cause", outcome.cause}};
  if (outcome.profile) json["profile"] = RunProfileJson(*outcome.profile);
  if (!outcome.failure) return json;
  auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  json["rank"] = outcome.failure->rank;
  json["host"] = outcome.failure->host;
  json["instruction"] = text_or_null(outcome.failure->instruction);
  json["last_done"] = text_or_null(outcome.failure->last_done);
  json["recipe_line"] = text_or_null(outcome.failure->recipe_line);
  json["message"] = text_or_null(outcome.failure->message);
  if (!outcome.failure->elsewhere.empty()) json["elsewhere"] = outcome.failure->elsewhere;
  return json;
}

std::string OutcomeText(const Outcome& outcome) {
  if (!outcome.failure) return outcome.cause + "\n";
  const Failure& failure = *outcome.failure;
  std::string text = "error: " + outcome.cause + " on " + failure.host + "\n";
  if (!failure.message.empty()) text += "  " + failure.message + "\n";
  text +=
      "  at " + (failure.instruction.empty() ? "start-up, before its first instruction" : failure.instruction) + "\n";
  if (!failure.recipe_line.empty()) text += "  from " + failure.recipe_line + "\n";
  if (outcome.exit_code == kExitDevice && !failure.last_done.empty())
    text += "  its device is known to have done " + failure.last_done + "\n";
  for (const std::string& other : failure.elsewhere) text += "  " + other + "\n";
  return text;
}

}  // namespace planwright
