#include "planner/run/launch/launch_life.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "planner/base/files/file_io.h"
#include "planner/base/text/status_macros.h"
#include "planner/run/launch/launch_log.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/run/launch/recipe_environment.h"
#include "planner/run/launch/until_saved.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/wire/records/rank_trial.h"
#include "planner/wire/records/routing_folder.h"
#include "planner/wire/records/run_timeout.h"

namespace planwright {
namespace {

// A script is started for each rank: it may ask which one it is before it starts the executor.
bool IsScript(const std::string& file) {
  std::byte begin[2] = {};
  const absl::StatusOr<PlainFile> program = PlainFile::Open(file);
  return program.ok() && program->Read(0, begin).ok() && begin[0] == std::byte{'#'} && begin[1] == std::byte{'!'};
}

absl::StatusOr<RankProgram> ProgramOf(const Plan& plan, const RunOptions& options, int life, const World& world) {
  ABSL_ASSIGN_OR_RETURN(const Variables of_recipe, VariablesOfRecipe(plan.launch, options.passed_on));
  RankProgram program = {.run_dir = options.run_dir,
                         .arguments = CommandOfRanks(plan, options, life),
                         .variables = VariablesOf(world),
                         .holds_stop_signal = Saves(plan, options),
                         // Programs of the lines before a rank may need the signal (`timeout`).
                         .outlives_sigterm = plan.launch.setup.empty(),
                         .gpus = OnGpus(plan, options),
                         // Libraries of GPUs do not promise to outlive a fork.
                         .forks = !OnGpus(plan, options) && plan.launch.setup.empty() && !IsScript(options.executor),
                         .world_size = plan.world_size,
                         .ranks_per_node = plan.cluster.gpus_per_node};
  program.variables.insert(of_recipe.begin(), of_recipe.end());
  if (const char* seconds = std::getenv(kTimeoutVariable)) program.variables.emplace(kTimeoutVariable, seconds);
  return program;
}

// The folders of the options.
absl::Status PrepareFolders(const RunOptions& options, const RunDirectory& directory) {
  if (!options.probe_dir.empty()) {
    if (absl::Status status = MakeDirectories(options.probe_dir + "/parts"); !status.ok()) return status;
  }
  if (!options.record_routing.empty()) {
    const bool goes_on = directory.life() > 1 && NewestStep(options.run_dir) > 0;
    if (absl::Status status = ClaimRoutingFolder(options.record_routing, directory.run_id(), goes_on); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

// Of the seconds until all is killed, those in which ranks may save: the rest is for ending them and for the outcome.
std::chrono::milliseconds UntilKilled(double seconds) {
  constexpr double kRest = 5;
  const double left = std::max(seconds - kRest, seconds / 2);
  return std::chrono::milliseconds(static_cast<int64_t>(std::clamp(left, 0.0, 1e9) * 1000));
}

absl::StatusOr<SupervisionTimes> TimesOf(const Plan& plan, const RunOptions& options,
                                         std::chrono::milliseconds timeout) {
  // Ranks that keep checkpoints are given the time to write one: as long as any instruction may take.
  const absl::StatusOr<std::optional<std::chrono::milliseconds>> replaced_deadlines = DeadlineOverride();
  if (!replaced_deadlines.ok()) return replaced_deadlines.status();
  // A rank that is stopped does not say in which step it is, so it is given the longer one of both floors.
  const double floor = std::max(plan.launch.deadline_floor, plan.launch.deadline_first_step);
  SupervisionTimes times = {.stopped = replaced_deadlines->value_or(
                                std::chrono::milliseconds(static_cast<int64_t>(std::min(floor, 1e9) * 1000)))};
  if (!Saves(plan, options)) return times;
  times.save = timeout;
  times.until_killed = UntilKilled(options.until_killed);
  times.until_they_stop = [&plan, &options] {
    return std::chrono::milliseconds(static_cast<int64_t>(std::min(SecondsUntilStop(plan, options), 1e9) * 1000));
  };
  return times;
}

// Rank 0's standard output as it is, everything else with the rank's name.
LineSink PrintTo(const Terminal& terminal) {
  return [&terminal](int rank, bool is_error, std::string_view line) {
    if (rank == 0 && !is_error) return terminal(false, line);
    terminal(true, "[rank " + std::to_string(rank) + "] " + std::string(line));
  };
}

}  // namespace

std::vector<std::string> CommandOfRanks(const Plan& plan, const RunOptions& options, int life) {
  std::vector<std::string> command = {options.executor, "--plan", options.run_dir + "/plan.json", "--run-dir",
                                      options.run_dir};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {name, value});
  };
  if (Keeps(plan, options)) add("--life", std::to_string(life));
  add("--accept-data", options.accepted_data);
  if (options.trial) add("--try", TrialFilesPath(options.run_dir));
  add("--probe", options.probe_dir);
  add("--device", options.device);
  add("--record-routing", options.record_routing);
  add("--replay-routing", options.replay_routing);
  add("--rounds", options.trial ? TrialRoundsPath(options.run_dir) : options.rounds);
  if (options.profile)
    add("--trace", std::to_string(options.profile->first) + "-" + std::to_string(options.profile->last));
  if (options.steps) add("--steps", std::to_string(*options.steps));
  return WithSetup(plan.launch, std::move(command));
}

absl::StatusOr<EndedLife> LaunchLife(const Plan& plan, const RunOptions& options, const RunDirectory& directory,
                                     std::chrono::milliseconds timeout, RankStarter& starter,
                                     const Terminal& terminal) {
  OpenLaunchLog(options.run_dir);
  LogEvent("run " + directory.run_id() + ", life " + std::to_string(directory.life()) +
           (options.job.empty() ? "" : ", job " + options.job));
  if (absl::Status status = PrepareFolders(options, directory); !status.ok()) return status;
  absl::StatusOr<World> world = MakeWorld(starter.address(), plan.launch.interface, starter.key());
  if (!world.ok()) return world.status();
  LogEvent("plan " + plan.name + ", digest " + plan.digest + ", " + std::to_string(plan.world_size) + " ranks of " +
           options.executor);
  absl::StatusOr<SupervisionTimes> times = TimesOf(plan, options, timeout);
  if (!times.ok()) return times.status();
  times->interrupted = [&terminal](bool saves) {
    terminal(true, saves ? "interrupted: ranks finish their step, save a checkpoint and end; a second Ctrl-C or signal "
                           "ends them at once"
                         : "interrupted: ranks end now");
  };
  ABSL_ASSIGN_OR_RETURN(const RankProgram program, ProgramOf(plan, options, directory.life(), *world));
  const double begun = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  absl::StatusOr<std::unique_ptr<Processes>> processes = starter.Start(program);
  if (!processes.ok()) return processes.status();
  Supervision supervision = Supervise(**processes, PrintTo(terminal), *times);
  return EndedLife{directory, *std::move(processes), std::move(supervision), begun};
}

}  // namespace planwright
