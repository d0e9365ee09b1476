#include "planner/run/measure/part_profile.h"

#include <algorithm>
#include <filesystem>
#include <future>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/run/launch/run_options.h"
#include "planner/run/measure/measure_traces.h"
#include "planner/run/measure/plan_rounds.h"
#include "planner/run/measure/run_part.h"
#include "planner/run/measure/skewed_routing.h"
#include "planner/run/measure/this_machine.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// The first steps also allocate memory and load libraries.
constexpr int64_t kFirstTraced = 3;

// Short steps are repeated more often, as a machine may be busy with something else for a moment; but traces must not
// become large.
int64_t LastTraced(const Plan& plan) {
  constexpr double kShortSeconds = 1.5, kShortFlops = 1e10;
  constexpr size_t kUsual = 4, kMostEntries = 100'000;
  const StepTime step = TimeStep(plan);
  size_t steps = kUsual, entries = 1;
  for (const RoleTime& role : step.roles) entries = std::max(entries, role.entries.size());
  if (step.length < (step.seconds ? kShortSeconds : kShortFlops))
    steps = std::clamp(kMostEntries / entries, kUsual, static_cast<size_t>(kMostProfiledSteps));
  return std::min(kFirstTraced + static_cast<int64_t>(steps) - 1, plan.budget.steps);
}

// PROFILE.json.parts/0123456789abcdef, or with "-fullest-2" behind it.
std::string PathOf(const MeasureOptions& options, const MeasurePart& part) {
  const std::string path = absl::StrCat(PartsFolder(options.output), "/", part.plan.digest.substr(0, 16));
  return part.fullest > 0 ? absl::StrCat(path, "-fullest-", part.fullest) : path;
}

std::string PartPath(const MeasureOptions& options, const MeasurePart& part) { return PathOf(options, part) + ".json"; }

// The plan as its ranks are placed: on one node, if all of them run on this machine.
Plan Placed(Plan plan, const MeasureOptions& options) {
  if (options.starter == nullptr) plan.cluster.gpus_per_node = plan.world_size;
  plan.cluster.profile = {};  // sizes are asked for, not times
  return plan;
}

int NodesOf(const Plan& plan, const MeasureOptions& options) {
  return options.starter == nullptr ? 1 : (plan.world_size - 1) / plan.cluster.gpus_per_node + 1;
}

absl::StatusOr<DeviceProfile> ProfileOf(const MeasurePart& part, const CommunicationRounds& rounds,
                                        const RunOptions& run, const MeasureOptions& options) {
  const Plan plan = Placed(part.plan, options);
  const std::string gpu = GpuOf(plan, options);
  Measurements measurements(std::min(plan.world_size, plan.cluster.gpus_per_node));
  if (absl::Status status = MeasureTraces(plan, run.run_dir, gpu == "none", measurements); !status.ok()) return status;
  if (absl::Status status = MeasureRounds(plan, run.run_dir, rounds, measurements); !status.ok()) return status;
  const absl::StatusOr<std::string> text = ReadWholeFile(TracePath(run.run_dir, 0), kTraceJson.bytes);
  if (!text.ok()) return text.status();
  const absl::StatusOr<Trace> trace = ReadTrace(*text);
  if (!trace.ok()) return trace.status();
  DeviceProfile profile = {.gpu = gpu,
                           .device = trace->device,
                           .driver = trace->driver,
                           .libraries = trace->libraries,
                           .tool = kToolVersion,
                           .hosts = HostsText(NodesOf(plan, options)),
                           .date = Today()};
  measurements.Fill(profile);
  return profile;
}

// The same while agents, which take a head that says nothing for lost, hear from this one. `signal`: that came
// meanwhile.
absl::StatusOr<DeviceProfile> ProfileBesideAgents(const MeasurePart& part, const CommunicationRounds& rounds,
                                                  const RunOptions& run, const MeasureOptions& options, int& signal) {
  if (options.starter == nullptr) return ProfileOf(part, rounds, run, options);
  std::future<absl::StatusOr<DeviceProfile>> profile =
      std::async(std::launch::async, [&] { return ProfileOf(part, rounds, run, options); });
  while (profile.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    const int came = options.starter->Pause(std::chrono::milliseconds(100));
    signal = came != 0 ? came : signal;
  }
  return profile.get();
}

}  // namespace

std::string GpuOf(const Plan& plan, const MeasureOptions& options) {
  RunOptions run;
  run.device = options.device;
  return OnGpus(plan, run) ? plan.cluster.gpu : "none";
}

std::optional<DeviceProfile> DoneBefore(const MeasureOptions& options, const MeasurePart& part) {
  const absl::StatusOr<std::string> text = ReadWholeFile(PartPath(options, part), kProfileJson.bytes);
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<DeviceProfile> profile = ReadProfile(*text);
  if (!profile.ok()) return std::nullopt;
  const bool same = profile->gpu == GpuOf(part.plan, options) && profile->tool == kToolVersion &&
                    profile->hosts == HostsText(NodesOf(part.plan, options));
  if (!same) return std::nullopt;
  return *std::move(profile);
}

absl::StatusOr<DeviceProfile> MeasureOne(const MeasurePart& part, const MeasureOptions& options, Measured& measured,
                                         int& signal) {
  const std::string path = PathOf(options, part);
  RunOptions run;
  run.executor = options.executor;
  run.device = options.device;
  run.run_dir = path + ".run";
  run.steps = LastTraced(part.plan);
  run.profile = StepRange{std::min(kFirstTraced, *run.steps), *run.steps};
  run.joins_traces = false;
  std::error_code error;
  const std::string choices = path + ".choices";
  const absl::Cleanup remove = [&] { fs::remove_all(choices, error); };
  fs::remove_all(run.run_dir, error), fs::remove_all(choices, error);  // of a part that was interrupted
  CommunicationRounds rounds;
  if (part.rounds) rounds = RoundsFor(Placed(part.plan, options));
  if (!rounds.list.empty()) {
    run.rounds = path + ".rounds";
    if (absl::Status status = WriteFileAtomically(run.rounds, RoundsJson(rounds)); !status.ok()) return status;
  }
  if (part.fullest > 0) {
    run.replay_routing = choices;
    const absl::Status written = WriteSkewedRouting(part.plan, *run.steps, part.fullest, choices);
    if (!written.ok()) return written;
  }
  if (absl::Status status = CheckRun(part.plan, run); !status.ok()) return status;
  absl::StatusOr<Outcome> outcome = RunPart(part.plan, run, options.starter);
  if (!outcome.ok()) return outcome.status();
  if (outcome->exit_code != kExitSuccess) {
    measured.failed = *std::move(outcome);
    measured.failed_part = part.what, measured.failed_run = run.run_dir;
    return DeviceProfile();
  }
  absl::StatusOr<DeviceProfile> profile = ProfileBesideAgents(part, rounds, run, options, signal);
  if (!profile.ok()) {
    measured.failed = Outcome{
        kExitStorage, absl::StrCat("the run is done, but its traces are incomplete: ", profile.status().message())};
    measured.failed_part = part.what, measured.failed_run = run.run_dir;
    return DeviceProfile();
  }
  if (absl::Status status = WriteFileAtomically(PartPath(options, part), WriteProfile(*profile)); !status.ok())
    return status;
  fs::remove_all(run.run_dir, error);
  return profile;
}

}  // namespace planwright
