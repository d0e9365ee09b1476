#include "planner/launch/launch_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <memory>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "planner/checkpoint/run_lives.h"
#include "planner/diagnostics/json_text.h"
#include "planner/launch/assemble_probe.h"
#include "planner/launch/held_signals.h"
#include "planner/launch/last_lines.h"
#include "planner/launch/launch_log.h"
#include "planner/launch/rank_environment.h"
#include "planner/launch/restart_policy.h"
#include "planner/launch/routing_folder.h"
#include "planner/launch/run_directory.h"
#include "planner/launch/run_profile.h"
#include "planner/launch/run_trace.h"
#include "planner/launch/slow_ranks.h"
#include "planner/launch/supervise.h"
#include "planner/plan/plan_json.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/file_io.h"
#include "planner/run_files/run_timeout.h"

namespace planwright {
namespace {

int64_t StepsOf(const Plan& plan, const RunOptions& launch) {
  return std::min(plan.budget.steps, launch.steps.value_or(plan.budget.steps));
}

bool OnGpus(const Plan& plan, const RunOptions& launch) {
  return launch.device.empty() ? plan.cluster.gpu != "none" : launch.device == "cuda";
}

RankProgram ProgramOf(const Plan& plan, const RunOptions& launch, int life, const World& world) {
  RankProgram program = {
      .run_dir = launch.run_dir,
      .arguments = {launch.executor, "--plan", launch.run_dir + "/plan.json", "--run-dir", launch.run_dir},
      .variables = VariablesOf(world),
      .holds_stop_signal = plan.checkpoint.every_steps > 0,
      .gpus = OnGpus(plan, launch),
      .world_size = plan.world_size,
      .ranks_per_node = plan.cluster.gpus_per_node};
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty()) program.arguments.insert(program.arguments.end(), {name, value});
  };
  if (plan.checkpoint.every_steps > 0) option("--life", std::to_string(life));
  option("--probe", launch.probe_dir);
  option("--device", launch.device);
  option("--record-routing", launch.record_routing);
  option("--replay-routing", launch.replay_routing);
  if (launch.profile)
    option("--trace", std::to_string(launch.profile->first) + "-" + std::to_string(launch.profile->last));
  if (launch.steps) option("--steps", std::to_string(*launch.steps));
  return program;
}

// The folders of the options.
absl::Status PrepareFolders(const RunOptions& launch) {
  if (!launch.probe_dir.empty()) {
    if (absl::Status status = MakeDirectories(launch.probe_dir + "/parts"); !status.ok()) return status;
  }
  if (!launch.record_routing.empty()) {
    if (absl::Status status = ClaimRoutingFolder(launch.record_routing); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

std::string DefaultRunDirectory(const Plan& plan) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", &local);
  std::string name = plan.name.substr(0, 128);  // a folder name may have 255 bytes
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '-';
  }
  return "runs/" + name + "-" + stamp;
}

absl::Status CheckRun(const Plan& plan, const RunOptions& launch) {
  if (access(launch.executor.c_str(), X_OK) != 0) {
    return absl::NotFoundError("there is no executor program at " + launch.executor +
                               " (build it with -DPLANWRIGHT_EXECUTOR=ON, or name another with --executor)");
  }
  if (launch.profile) {
    if (absl::Status status = CheckStepRange(*launch.profile, StepsOf(plan, launch)); !status.ok()) return status;
  }
  // The choices of the steps that are done would be missing in the record.
  if (!launch.record_routing.empty() && access((launch.run_dir + "/lives").c_str(), F_OK) == 0) {
    return absl::InvalidArgumentError("--record-routing takes a run from its first step, and " + launch.run_dir +
                                      " holds one that goes on; choose another --run-dir");
  }
  if (!launch.record_routing.empty() && plan.initialize && plan.initialize->schedule == "checkpoint") {
    return absl::InvalidArgumentError(
        "--record-routing takes a run from its first step, and with initialize.schedule checkpoint this one begins "
        "later; use schedule: recipe, or leave out --record-routing");
  }
  if (!launch.record_routing.empty()) return CheckRecordRouting(plan, launch.record_routing);
  if (!launch.replay_routing.empty()) return CheckReplayRouting(plan, StepsOf(plan, launch), launch.replay_routing);
  return absl::OkStatus();
}

namespace {

// Rank 0's standard output as it is, everything else with the rank's name.
LineSink PrintTo(const Terminal& terminal) {
  return [&terminal](int rank, bool is_error, std::string_view line) {
    if (rank == 0 && !is_error) return terminal(false, line);
    terminal(true, "[rank " + std::to_string(rank) + "] " + std::string(line));
  };
}

// What a launch does once its ranks have ended well, and what that makes of the outcome.
void Complete(const Plan& plan, const RunOptions& launch, Outcome& outcome) {
  const auto incomplete = [&](const char* what, const absl::Status& status) {
    outcome = {kExitStorage, "the run is done, but its " + std::string(what) + ": " + std::string(status.message())};
  };
  if (outcome.exit_code == kExitSuccess && !launch.record_routing.empty()) {
    const absl::Status status = FinishRoutingFolder(plan, StepsOf(plan, launch), launch.record_routing);
    if (!status.ok()) incomplete("choices are incomplete", status);
  }
  if (outcome.exit_code == kExitSuccess && !launch.probe_dir.empty()) {
    if (absl::Status status = AssembleProbe(plan, launch.probe_dir); !status.ok())
      incomplete("probe is incomplete", status);
  }
  if (outcome.exit_code == kExitSuccess) outcome.memory = ReadRunMemory(plan, launch.run_dir, OnGpus(plan, launch));
  if (!launch.profile) return;
  absl::StatusOr<RunProfile> profile = ReadRunProfile(plan, launch.run_dir);
  if (profile.ok()) {
    outcome.profile = *std::move(profile);
    const absl::Status joined = JoinTraces(plan, launch.run_dir);
    if (!joined.ok() && outcome.exit_code == kExitSuccess) incomplete("trace is incomplete", joined);
  } else if (outcome.exit_code == kExitSuccess) {  // a run that failed may not have come to these steps
    incomplete("trace is incomplete", profile.status());
  }
}

absl::StatusOr<Outcome> RunLife(const Plan& plan, const RunOptions& launch, std::chrono::milliseconds timeout,
                                RankStarter& starter, const Terminal& terminal) {
  absl::StatusOr<RunDirectory> directory = RunDirectory::Open(plan, launch.run_dir);
  if (!directory.ok()) return directory.status();
  if (absl::Status status = PrepareFolders(launch); !status.ok()) return status;
  absl::StatusOr<World> world = MakeWorld(starter.address(), plan.launch.interface);
  if (!world.ok()) return world.status();
  OpenLaunchLog(launch.run_dir);
  LogEvent("plan " + plan.name + ", digest " + plan.digest + ", " + std::to_string(plan.world_size) + " ranks of " +
           launch.executor);
  // Ranks that keep checkpoints are given the time to write one: as long as any instruction may take.
  const absl::StatusOr<std::optional<std::chrono::milliseconds>> replaced_deadlines = DeadlineOverride();
  if (!replaced_deadlines.ok()) return replaced_deadlines.status();
  // A rank that is stopped does not say in which step it is, so it is given the longer one of both floors.
  const double floor = std::max(plan.launch.deadline_floor, plan.launch.deadline_first_step);
  SupervisionTimes times = {.stopped = replaced_deadlines->value_or(
                                std::chrono::milliseconds(static_cast<int64_t>(std::min(floor, 1e9) * 1000)))};
  if (plan.checkpoint.every_steps > 0) times.save = timeout;
  const absl::StatusOr<std::unique_ptr<Processes>> processes =
      starter.Start(ProgramOf(plan, launch, directory->life(), *world));
  if (!processes.ok()) return processes.status();
  const Supervision supervision = Supervise(**processes, PrintTo(terminal), times);
  const auto position = [&](int rank) { return (*processes)->Position(rank); };
  Outcome outcome = OutcomeOf(plan, supervision, position);
  if (outcome.failure) outcome.failure->last_lines = LastLinesOf(launch.run_dir, outcome.failure->rank);
  Complete(plan, launch, outcome);
  outcome.slow = FindSlowRanks(plan, position);
  // The files in the run directory may be those of a newer life by now.
  const absl::StatusOr<bool> replaced = directory->IsReplaced();
  if (replaced.ok() && *replaced) return Outcome{kExitReplaced, "a newer life of this run has begun; this one ended"};
  LogEvent("exit code " + std::to_string(outcome.exit_code) + ": " + outcome.cause);
  absl::Status written = replaced.status();
  if (written.ok())
    written = WriteFileAtomically(launch.run_dir + "/outcome.json", JsonText(OutcomeJson(outcome), 1) + "\n");
  if (written.ok()) return outcome;
  // How the run ended matters more than that a file cannot say so.
  if (outcome.exit_code == kExitSuccess)
    return Outcome{kExitStorage, "the run is done, but its outcome is not written: " + std::string(written.message())};
  terminal(true, "outcome.json is not written: " + std::string(written.message()));
  return outcome;
}

// The first plan that the nodes suffice for; null if there is none.
const Plan* Fitting(const std::vector<Plan>& plans, int nodes) {
  for (const Plan& plan : plans) {
    const int per_node = plan.cluster.gpus_per_node;
    if ((plan.world_size - 1) / per_node < nodes) return &plan;
  }
  return nullptr;
}

// Of a run that was interrupted before its next life: the outcome of the life before, which was not the last word.
Outcome Interrupted(const Outcome& last, int number, const RunOptions& launch, const Terminal& terminal) {
  Outcome outcome = last;
  outcome.exit_code = 128 + number;
  outcome.cause =
      "interrupted by signal " + std::to_string(number) + " before it was started again, after this: " + last.cause;
  outcome.interrupted_by = number;
  LogEvent("exit code " + std::to_string(outcome.exit_code) + ": " + outcome.cause);
  const absl::Status written =
      WriteFileAtomically(launch.run_dir + "/outcome.json", JsonText(OutcomeJson(outcome), 1) + "\n");
  if (!written.ok()) terminal(true, "outcome.json is not written: " + std::string(written.message()));
  return outcome;
}

}  // namespace

absl::StatusOr<Outcome> LaunchRun(const std::vector<Plan>& plans, const RunOptions& launch, RankStarter& starter,
                                  const Terminal& terminal) {
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow (ulimit -f) is an error of the call that writes to it
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
  for (;;) {
    const Plan* plan = Fitting(plans, starter.nodes());
    if (plan == nullptr) {
      const std::string few = "no plan is for as few as " + std::to_string(starter.nodes()) + " nodes";
      if (!last) return absl::UnavailableError(few);
      LogEvent("not started again: " + few);
      terminal(true, "not started again: " + few);
      return *last;
    }
    absl::StatusOr<Outcome> outcome = RunLife(*plan, launch, *timeout, starter, terminal);
    // The life could not begin, as its files had no room.
    if (absl::IsResourceExhausted(outcome.status()))
      return Outcome{kExitStorage, std::string(outcome.status().message())};
    if (!outcome.ok()) return outcome;
    std::string why;
    const auto pause = policy.Next(*outcome, NewestStep(launch.run_dir), why);
    if (!why.empty()) terminal(true, why);
    if (!why.empty()) LogEvent(why);
    if (!pause) return outcome;
    const std::string again = "restart " + std::to_string(policy.restarts()) + " of " +
                              std::to_string(plans[0].launch.restarts) + " in " + std::to_string(pause->count()) + " s";
    LogEvent(again);
    terminal(true, OutcomeText(*outcome) + again);
    if (const int number = starter.Pause(*pause); number != 0) return Interrupted(*outcome, number, launch, terminal);
    last = *std::move(outcome);
  }
}

}  // namespace planwright
