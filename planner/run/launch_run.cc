#include "planner/run/launch_run.h"

#include <signal.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/run/launch/held_signals.h"
#include "planner/run/launch/launch_log.h"
#include "planner/run/launch/work_beside.h"
#include "planner/run/outcome/gather_outcome.h"
#include "planner/run/outcome/outcome_text.h"
#include "planner/run/restart_policy.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/wire/records/run_timeout.h"

namespace planwright {
namespace {

absl::Status WriteOutcome(const std::string& run_dir, const Outcome& outcome) {
  return WriteFileAtomically(OutcomePath(run_dir), OutcomeFile(outcome));
}

// Of a run whose folder was moved or removed, or lies on a disk that is not mounted any more: a next life would begin
// anew in an empty one. It is not started again by itself.
Outcome Gone(const std::string& why, const Outcome& last) {
  return {kExitStorage, "the run directory is lost: " + why + "; before: " + last.cause};
}

// What there is to tell of a life, and, in `warnings`, of files that lack it.
struct Told {
  Outcome outcome;
  std::vector<std::string> warnings = {};
};

// Writes the outcome of a life into its run directory, if that is still its own.
Told Written(const RunOptions& options, const RunDirectory& directory, const Outcome& outcome) {
  // The files in the run directory may be those of a newer life by now.
  const absl::StatusOr<bool> replaced = directory.IsReplaced();
  if (replaced.ok() && *replaced) return {{kExitReplaced, "a newer life of this run has begun; this one ended"}};
  LogEvent("exit code " + std::to_string(outcome.exit_code) + ": " + outcome.cause);
  if (!replaced.ok()) return {Gone(std::string(replaced.status().message()), outcome)};
  const absl::Status written = WriteOutcome(options.run_dir, outcome);
  if (written.ok()) return {outcome};
  // How the run ended matters more than that a file cannot say so.
  if (outcome.exit_code == kExitSuccess)
    return {{kExitStorage, "the run is done, but its outcome is not written: " + std::string(written.message())}};
  return {outcome, {"outcome.json is not written: " + std::string(written.message())}};
}

// Gathers what a life left, and writes it. `signal`: that came meanwhile.
Told EndLife(const Plan& plan, const RunOptions& options, const EndedLife& life, const std::atomic<int>& signal) {
  int number = 0;  // that ended the joining of traces
  Outcome outcome = GatherOutcome(plan, options, life, [&] { return (number = signal) != 0; });
  if (number != 0 && outcome.interrupted_by == 0) outcome.interrupted_by = number;
  Told told = Written(options, life.directory, outcome);
  if (number != 0) {
    told.warnings.insert(told.warnings.begin(), "the traces of the ranks stay in " + options.run_dir +
                                                    "/trace and are not joined: signal " + std::to_string(number) +
                                                    " came");
  }
  return told;
}

// Of a life whose ranks could not be started.
Outcome NotStarted(const RunDirectory& directory, const absl::Status& why) {
  Outcome outcome = {absl::IsResourceExhausted(why) ? kExitStorage : kExitUsage,
                     "no rank could be started: " + std::string(why.message())};
  outcome.run_id = directory.run_id();
  return outcome;
}

// `life`: its number. `ended` is told while the run directory is still held: whoever looks at it then knows whether
// another life follows.
absl::StatusOr<Outcome> RunLife(const Plan& plan, const RunOptions& options, std::chrono::milliseconds timeout,
                                RankStarter& starter, const Terminal& terminal, int& life,
                                const std::function<void(const Outcome&)>& ended) {
  std::atomic<int> early = 0, late = 0;  // signals
  const absl::StatusOr<RunDirectory> directory =
      WorkBeside(starter, early, [&] { return RunDirectory::Open(plan, options.run_dir, options.trial); });
  if (early != 0) raise(early);  // held: the ranks' supervisor reads it
  if (!directory.ok()) return directory.status();
  life = directory->life();
  const absl::StatusOr<EndedLife> lived = LaunchLife(plan, options, *directory, timeout, starter, terminal);
  const Told told = WorkBeside(starter, late, [&] {
    return lived.ok() ? EndLife(plan, options, *lived, late)
                      : Written(options, *directory, NotStarted(*directory, lived.status()));
  });
  if (late != 0 && told.outcome.interrupted_by == 0) raise(late);  // held: whoever waits for the next life reads it
  for (const std::string& warning : told.warnings) terminal(true, warning);
  ended(told.outcome);
  return told.outcome;
}

// The first plan that the nodes suffice for; null if there is none.
const Plan* Fitting(const std::vector<Plan>& plans, int nodes) {
  for (const Plan& plan : plans) {
    const int per_node = plan.cluster.gpus_per_node;
    if ((plan.world_size - 1) / per_node < nodes) return &plan;
  }
  return nullptr;
}

// The outcome of a run that was interrupted before its next life: that of the life before was not the last word.
Outcome Interrupted(const Outcome& last, int number, const RunOptions& options, const Terminal& terminal) {
  Outcome outcome = last;
  outcome.exit_code = 128 + number;
  outcome.cause =
      "interrupted by signal " + std::to_string(number) + " before it was started again, after this: " + last.cause;
  outcome.interrupted_by = number;
  const absl::Status written = WriteOutcome(options.run_dir, outcome);
  if (!written.ok()) terminal(true, "outcome.json is not written: " + std::string(written.message()));
  LogEvent("exit code " + std::to_string(outcome.exit_code) + ": " + outcome.cause);  // now no life follows
  return outcome;
}

}  // namespace

absl::StatusOr<Outcome> LaunchRun(const std::vector<Plan>& plans, const RunOptions& options, RankStarter& starter,
                                  const Terminal& terminal) {
  const absl::StatusOr<std::chrono::milliseconds> timeout = RunTimeout();
  if (!timeout.ok()) return timeout.status();
  // From here on a signal is an answer to read, also between two lives. One that came too late to matter is dropped.
  HeldSignals signals;
  const absl::Cleanup drop = [&signals] {
    while (signals.Next() != 0) {
    }
  };
  RestartPolicy policy(plans[0].checkpoint.every_steps > 0 ? plans[0].launch.restarts : 0);
  std::optional<Outcome> last;  // of the life before
  int life = 0;
  for (;;) {
    // Only runs that keep checkpoints have a second life.
    const absl::StatusOr<bool> replaced = last ? IsReplaced(options.run_dir, life) : absl::StatusOr<bool>(false);
    if (!replaced.ok()) return Gone(std::string(replaced.status().message()), *last);
    const Plan* plan = Fitting(plans, starter.nodes());
    if (plan == nullptr) {
      const std::string few = "no plan is for as few as " + std::to_string(starter.nodes()) + " nodes";
      if (!last) return absl::UnavailableError(few);
      LogEvent("not started again: " + few);
      terminal(true, "not started again: " + few);
      return *last;
    }
    std::optional<std::chrono::seconds> pause;
    absl::StatusOr<Outcome> outcome =
        RunLife(*plan, options, *timeout, starter, terminal, life, [&](const Outcome& ended) {
          std::string why;
          pause = policy.Next(ended, NewestStep(options.run_dir), why);
          if (!why.empty()) terminal(true, why);
          if (!why.empty()) LogEvent(why);
          if (!pause) return;
          const std::string again = "restart " + std::to_string(policy.restarts()) + " of " +
                                    std::to_string(plans[0].launch.restarts) + " in " + std::to_string(pause->count()) +
                                    " s";
          LogEvent(again);
          terminal(true, OutcomeText(ended) + again);
        });
    // The life could not begin, as its files had no room.
    if (absl::IsResourceExhausted(outcome.status()))
      return Outcome{kExitStorage, std::string(outcome.status().message())};
    if (!outcome.ok()) return outcome;
    if (!pause) return outcome;
    if (const int number = starter.Pause(*pause); number != 0) return Interrupted(*outcome, number, options, terminal);
    last = *std::move(outcome);
  }
}

}  // namespace planwright
