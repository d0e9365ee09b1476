#include "planner/measure/measure_parts.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/estimate/step_time.h"
#include "planner/launch/held_signals.h"
#include "planner/launch/run_options.h"
#include "planner/measure/measure_traces.h"
#include "planner/measure/plan_rounds.h"
#include "planner/measure/run_part.h"
#include "planner/measure/skewed_routing.h"
#include "planner/measure/this_machine.h"
#include "planner/plan/json_limits.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/file_io.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

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

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

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

// The recipe's word for what its ranks run on.
std::string GpuOf(const Plan& plan, const MeasureOptions& options) {
  RunOptions run;
  run.device = options.device;
  return OnGpus(plan, run) ? plan.cluster.gpu : "none";
}

int NodesOf(const Plan& plan, const MeasureOptions& options) {
  return options.starter == nullptr ? 1 : (plan.world_size - 1) / plan.cluster.gpus_per_node + 1;
}

// The part's profile, if an earlier call has measured it on a machine like this one with this program.
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

// Empty, or in what two parts differ that must be equal.
std::string Difference(const DeviceProfile& a, const DeviceProfile& b) {
  const auto differs = [](const char* what, const std::string& x, const std::string& y) {
    return x == y ? "" : absl::StrCat("their ", what, " is ", x, " and ", y);
  };
  for (const std::string& text : {differs("device", a.device, b.device), differs("driver", a.driver, b.driver),
                                  differs("library", a.libraries, b.libraries)}) {
    if (!text.empty()) return text;
  }
  return "";
}

std::string DurationText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  return whole < 60 ? absl::StrCat(whole, " s") : absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
}

// Before minutes go into the first part.
absl::Status CheckDevices(const std::vector<MeasurePart>& parts, const MeasureOptions& options) {
  for (const MeasurePart& part : parts) {
    if (options.device == "cuda" && part.plan.cluster.gpu == "none") {
      return absl::InvalidArgumentError(
          absl::StrCat(part.what,
                       ": cluster.gpu is none, so nothing says which GPU is measured with --device cuda: add "
                       "cluster.gpu=NAME after the recipe"));
    }
    const std::string one = GpuOf(parts.front().plan, options), other = GpuOf(part.plan, options);
    if (one != other) {
      return absl::InvalidArgumentError(absl::StrCat("the recipes are of different devices: cluster.gpu is ", one,
                                                     " in ", parts.front().what, ", and ", other, " in ", part.what,
                                                     "; measure each device into a file of its own"));
    }
  }
  return absl::OkStatus();
}

std::string NameOf(const MeasurePart& part) {
  const std::string ranks = absl::StrCat(part.plan.world_size, part.plan.world_size == 1 ? " rank" : " ranks");
  if (part.fullest <= 0) return absl::StrCat(part.what, ", ", ranks);
  return absl::StrCat(part.what, ", ", ranks, ", ",
                      part.fullest == 1 ? "all experts alike"
                                        : absl::StrCat("the fullest experts with ", part.fullest, " times the mean"));
}

// Runs a part and writes its profile beside its run directory, which is removed then. Of a part that failed, the
// outcome is in `measured`. `signal`: that came when it had run.
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

void SetInterrupted(int signal, const MeasurePart& part, Measured& measured) {
  measured.failed = Outcome{128 + signal, absl::StrCat("interrupted by signal ", signal, " between two parts")};
  measured.failed->interrupted_by = signal;
  measured.failed_part = part.what;
}

// One profile of all parts. Those with made-up choices say only how much longer experts' products took than in the one
// where all experts are alike.
DeviceProfile Joined(const std::vector<MeasurePart>& parts, const std::vector<DeviceProfile>& profiles) {
  std::vector<DeviceProfile> joined;
  Measurements skews;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].fullest <= 0) joined.push_back(profiles[i]);
    if (parts[i].fullest <= 1) continue;
    for (size_t even = 0; even < parts.size(); ++even) {
      if (parts[even].fullest != 1 || parts[even].plan.digest != parts[i].plan.digest) continue;
      for (const MeasuredCompute& point : profiles[i].compute) {
        if (point.kind != OpKind::kExperts && point.kind != OpKind::kExpertsGrad) continue;
        for (const MeasuredCompute& alike : profiles[even].compute) {
          if (alike.kind == point.kind && alike.flops == point.flops && alike.bytes == point.bytes)
            skews.AddSkew(point.kind, parts[i].fullest, point.seconds.median / alike.seconds.median);
        }
      }
    }
  }
  DeviceProfile merged = Merged(joined);
  skews.Fill(merged);
  return merged;
}

}  // namespace

std::string PartsFolder(const std::string& output) { return output + ".parts"; }

int64_t PartsDone(const std::string& output) {
  std::error_code error;
  int64_t done = 0;
  for (fs::directory_iterator file(PartsFolder(output), error), end; !error && file != end; file.increment(error))
    done += file->path().extension() == ".json" ? 1 : 0;
  return done;
}

absl::StatusOr<Measured> MeasureParts(const std::vector<MeasurePart>& parts, const MeasureOptions& options) {
  Measured measured;
  if (absl::Status status = CheckDevices(parts, options); !status.ok()) return status;
  const std::string folder = PartsFolder(options.output);
  if (absl::Status status = MakeDirectories(folder); !status.ok()) return status;
  // A signal between two runs, where nobody waits for one, must not end the program: in a job it asks to go on later.
  HeldSignals signals;
  int signal = 0;
  std::vector<DeviceProfile> profiles;
  double spent = 0;
  int64_t ran = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = absl::StrCat("part ", i + 1, " of ", parts.size(), ": ", NameOf(parts[i]));
    if (std::optional<DeviceProfile> done = DoneBefore(options, parts[i])) {
      options.progress(absl::StrCat(name, ": measured before"));
      profiles.push_back(*std::move(done));
      continue;
    }
    if (signal == 0) signal = signals.Next();
    if (signal != 0) {
      SetInterrupted(signal, parts[i], measured);
      return measured;
    }
    options.progress(name);
    const Clock::time_point begin = Clock::now();
    absl::StatusOr<DeviceProfile> profile = MeasureOne(parts[i], options, measured, signal);
    if (!profile.ok()) return profile.status();
    if (measured.failed) return measured;
    const double seconds = SecondsSince(begin);
    spent += seconds, ++ran;
    int64_t left = 0;
    for (size_t next = i + 1; next < parts.size(); ++next) left += !DoneBefore(options, parts[next]);
    const std::string rest =
        left == 0 ? ""
                  : "; about " + DurationText(spent / static_cast<double>(ran) * static_cast<double>(left)) + " left";
    options.progress(absl::StrCat("  ", profile->compute.size(), " uses of instructions and ",
                                  profile->communication.size(), " of communications in ", DurationText(seconds),
                                  rest));
    profiles.push_back(*std::move(profile));
  }
  for (const DeviceProfile& profile : profiles) {
    if (const std::string difference = Difference(profiles.front(), profile); !difference.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("the parts are of different devices: ", difference,
                                                     "; measure each device into a file of its own (parts are in ",
                                                     folder, ")"));
    }
  }
  while (signals.Next() != 0) {  // too late to matter
  }
  measured.profile = Joined(parts, profiles);
  if (absl::Status status = WriteFileAtomically(options.output, WriteProfile(measured.profile)); !status.ok())
    return status;
  std::error_code error;
  fs::remove_all(folder, error);
  return measured;
}

}  // namespace planwright
