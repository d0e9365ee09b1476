#include "planner/launch/launch_local.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <memory>

#include "planner/launch/assemble_probe.h"
#include "planner/launch/last_lines.h"
#include "planner/launch/launch_log.h"
#include "planner/launch/rank_environment.h"
#include "planner/launch/routing_folder.h"
#include "planner/launch/run_directory.h"
#include "planner/launch/run_profile.h"
#include "planner/launch/supervise.h"
#include "planner/plan/plan_json.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/file_io.h"
#include "planner/run_files/log_file.h"
#include "planner/run_files/run_timeout.h"

namespace planwright {
namespace {

int64_t StepsOf(const Plan& plan, const LocalLaunch& launch) {
  return std::min(plan.budget.steps, launch.steps.value_or(plan.budget.steps));
}

std::vector<Command> CommandsOf(const Plan& plan, const LocalLaunch& launch, int life, const LocalWorld& world) {
  Command command;
  command.arguments = {launch.executor, "--plan", launch.run_dir + "/plan.json", "--run-dir", launch.run_dir};
  command.holds_stop_signal = plan.checkpoint.every_steps > 0;
  const auto option = [&](const char* name, const std::string& value) {
    if (!value.empty()) command.arguments.insert(command.arguments.end(), {name, value});
  };
  if (plan.checkpoint.every_steps > 0) option("--life", std::to_string(life));
  option("--probe", launch.probe_dir);
  option("--device", launch.device);
  option("--record-routing", launch.record_routing);
  option("--replay-routing", launch.replay_routing);
  if (launch.profile) {
    const StepRange& steps = *launch.profile;
    command.arguments.insert(command.arguments.end(),
                             {"--profile", std::to_string(steps.first) + "-" + std::to_string(steps.last)});
  }
  if (launch.steps) command.arguments.insert(command.arguments.end(), {"--steps", std::to_string(*launch.steps)});
  const std::vector<std::string> inherited = OwnEnvironment();
  std::vector<Command> commands(plan.world_size, command);
  for (int rank = 0; rank < plan.world_size; ++rank)
    commands[rank].environment = RankEnvironment(world, rank, inherited);
  return commands;
}

// Copies what each rank prints to logs/rankNNNN.out and to the terminal.
class RankOutput {
 public:
  RankOutput(const std::string& run_dir, int ranks, const Terminal& terminal) : terminal_(terminal) {
    for (int rank = 0; rank < ranks; ++rank)
      files_.push_back(std::make_unique<LogFile>(run_dir + "/logs", RankOutputName(rank)));
  }
  absl::Status Open() {
    for (const auto& file : files_) {
      if (absl::Status status = file->Open(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  void Line(int rank, bool is_error, std::string_view line) {
    files_[rank]->Write(line);
    if (rank == 0 && !is_error) return terminal_(false, line);
    terminal_(true, "[rank " + std::to_string(rank) + "] " + std::string(line));
  }
  // A full disk is no reason to end a run, but nobody should look in vain for what was printed.
  void ReportLost() const {
    for (const auto& file : files_) {
      if (file->lost() > 0)
        terminal_(true, "lines missing in " + file->path() + ": " + std::to_string(file->lost()) + " (" +
                            file->problem() + ")");
    }
  }

 private:
  std::vector<std::unique_ptr<LogFile>> files_;
  const Terminal& terminal_;
};

// The folders of the options.
absl::Status PrepareFolders(const LocalLaunch& launch) {
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

absl::Status CheckLocalLaunch(const Plan& plan, const LocalLaunch& launch) {
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
  if (!launch.record_routing.empty()) return CheckRecordRouting(plan, launch.record_routing);
  if (!launch.replay_routing.empty()) return CheckReplayRouting(plan, StepsOf(plan, launch), launch.replay_routing);
  return absl::OkStatus();
}

absl::StatusOr<Outcome> LaunchLocal(const Plan& plan, const LocalLaunch& launch, const Terminal& terminal) {
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow (ulimit -f) is an error of the call that writes to it
  absl::StatusOr<std::chrono::milliseconds> timeout = RunTimeout();
  if (!timeout.ok()) return timeout.status();
  absl::StatusOr<RunDirectory> directory = RunDirectory::Open(plan, launch.run_dir);
  if (!directory.ok()) return directory.status();
  if (absl::Status status = PrepareFolders(launch); !status.ok()) return status;
  RankOutput output(launch.run_dir, plan.world_size, terminal);
  if (absl::Status status = output.Open(); !status.ok()) return status;
  absl::StatusOr<LocalWorld> world = MakeLocalWorld(plan.world_size);
  if (!world.ok()) return world.status();
  OpenLaunchLog(launch.run_dir);
  LogEvent("plan " + plan.name + ", digest " + plan.digest + ", " + std::to_string(plan.world_size) + " ranks of " +
           launch.executor);
  // Ranks that keep checkpoints are given the time to write one: as long as any instruction may take.
  SupervisionTimes times = {.stopped = *timeout};
  if (plan.checkpoint.every_steps > 0) times.save = *timeout;
  absl::StatusOr<Supervision> supervision = Supervise(
      CommandsOf(plan, launch, directory->life(), *world),
      [&](int rank, bool is_error, std::string_view line) { output.Line(rank, is_error, line); }, times);
  if (!supervision.ok()) return supervision.status();
  output.ReportLost();
  Outcome outcome = OutcomeOf(plan, *supervision, [&](int rank) { return ReadRecorder(launch.run_dir, rank); });
  if (outcome.failure) outcome.failure->last_lines = LastLinesOf(launch.run_dir, outcome.failure->rank);
  if (outcome.exit_code == kExitSuccess && !launch.record_routing.empty()) {
    if (absl::Status status = FinishRoutingFolder(plan, StepsOf(plan, launch), launch.record_routing); !status.ok())
      outcome = {kExitStorage, "the run is done, but its choices are incomplete: " + std::string(status.message())};
  }
  if (outcome.exit_code == kExitSuccess && !launch.probe_dir.empty()) {
    if (absl::Status status = AssembleProbe(plan, launch.probe_dir); !status.ok()) {
      outcome = {kExitStorage, "the run is done, but its probe is incomplete: " + std::string(status.message())};
    }
  }
  if (launch.profile) {
    absl::StatusOr<RunProfile> profile = ReadRunProfile(plan, launch.run_dir);
    if (profile.ok()) {
      outcome.profile = *std::move(profile);
    } else if (outcome.exit_code == kExitSuccess) {  // a run that failed may not have come to these steps
      outcome = {kExitStorage,
                 "the run is done, but its profile is incomplete: " + std::string(profile.status().message())};
    }
  }
  // The files in the run directory may be those of a newer life by now.
  const absl::StatusOr<bool> replaced = directory->IsReplaced();
  if (replaced.ok() && *replaced) return Outcome{kExitReplaced, "a newer life of this run has begun; this one ended"};
  LogEvent("exit code " + std::to_string(outcome.exit_code) + ": " + outcome.cause);
  absl::Status written = replaced.status();
  if (written.ok())
    written = WriteFileAtomically(launch.run_dir + "/outcome.json", OutcomeJson(outcome).dump(1) + "\n");
  if (written.ok()) return outcome;
  // How the run ended matters more than that a file cannot say so.
  if (outcome.exit_code == kExitSuccess)
    return Outcome{kExitStorage, "the run is done, but its outcome is not written: " + std::string(written.message())};
  terminal(true, "outcome.json is not written: " + std::string(written.message()));
  return outcome;
}

}  // namespace planwright
