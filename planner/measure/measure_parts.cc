#include "planner/measure/measure_parts.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/connection/proof.h"
#include "planner/launch/local_starter.h"
#include "planner/launch/run_options.h"
#include "planner/lives/launch_run.h"
#include "planner/measure/measure_traces.h"
#include "planner/measure/this_machine.h"
#include "planner/plan/json_limits.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/file_io.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The first steps also allocate memory and load libraries.
constexpr int64_t kFirstTraced = 3, kLastTraced = 6;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string PartPath(const MeasureOptions& options, const Plan& plan) {
  return absl::StrCat(PartsFolder(options.output), "/", plan.digest.substr(0, 16), ".json");
}

// The recipe's word for what its ranks run on.
std::string GpuOf(const Plan& plan, const MeasureOptions& options) {
  RunOptions run;
  run.device = options.device;
  return OnGpus(plan, run) ? plan.cluster.gpu : "none";
}

// The part's profile, if an earlier call has measured it on a machine like this one with this program.
std::optional<DeviceProfile> DoneBefore(const MeasureOptions& options, const Plan& plan) {
  const absl::StatusOr<std::string> text = ReadWholeFile(PartPath(options, plan), kProfileJson.bytes);
  if (!text.ok()) return std::nullopt;
  absl::StatusOr<DeviceProfile> profile = ReadProfile(*text);
  if (!profile.ok()) return std::nullopt;
  const bool same =
      profile->gpu == GpuOf(plan, options) && profile->tool == kToolVersion && profile->hosts == HostsText();
  if (!same) return std::nullopt;
  return *std::move(profile);
}

// Ends the run of a part that takes too long, by the signal with which a user would.
class Alarm {
 public:
  Alarm() {
    // The signal must reach the thread that waits for it.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] { Wait(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Alarm() { Stop(); }

  // Whether it went off.
  bool Stop() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    return rang_;
  }

 private:
  void Wait() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(kLongestPartSeconds), [this] { return done_; })) return;
    rang_ = true;
    kill(getpid(), SIGTERM);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, rang_ = false;
  std::thread thread_;
};

absl::StatusOr<Outcome> Run(const Plan& plan, const RunOptions& options) {
  const absl::StatusOr<std::string> address = LocalStoreAddress(plan.launch.interface);
  if (!address.ok()) return address.status();
  const absl::StatusOr<std::string> key = MakeSecret();
  if (!key.ok()) return key.status();
  LocalStarter here(*address, *key);
  Alarm alarm;
  // What ranks print is in their logs.
  absl::StatusOr<Outcome> outcome = LaunchRun({plan}, options, here, [](bool, std::string_view) {});
  if (alarm.Stop() && outcome.ok() && outcome->exit_code != kExitSuccess) {
    return absl::DeadlineExceededError(absl::StrCat("a part may take ", kLongestPartSeconds / 60,
                                                    " minutes, and this one was not done by then: measure a recipe "
                                                    "with shorter steps, such as one with fewer layers"));
  }
  return outcome;
}

absl::StatusOr<DeviceProfile> ProfileOf(const Plan& plan, const RunOptions& run, const std::string& gpu) {
  Measurements measurements;
  if (absl::Status status = MeasureTraces(plan, run.run_dir, gpu == "none", measurements); !status.ok()) return status;
  const absl::StatusOr<std::string> text = ReadWholeFile(TracePath(run.run_dir, 0), kTraceJson.bytes);
  if (!text.ok()) return text.status();
  const absl::StatusOr<Trace> trace = ReadTrace(*text);
  if (!trace.ok()) return trace.status();
  DeviceProfile profile = {.gpu = gpu,
                           .device = trace->device,
                           .driver = trace->driver,
                           .libraries = trace->libraries,
                           .tool = kToolVersion,
                           .hosts = HostsText(),
                           .date = Today()};
  measurements.Fill(profile);
  return profile;
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

}  // namespace

std::string PartsFolder(const std::string& output) { return output + ".parts"; }

absl::StatusOr<Measured> MeasureParts(const std::vector<MeasurePart>& parts, const MeasureOptions& options) {
  Measured measured;
  std::vector<DeviceProfile> profiles;
  double spent = 0;
  int64_t ran = 0;
  for (const MeasurePart& part : parts) {
    if (options.device == "cuda" && part.plan.cluster.gpu == "none") {
      return absl::InvalidArgumentError(
          absl::StrCat(part.what,
                       ": cluster.gpu is none, so nothing says which GPU is measured with --device cuda: add "
                       "cluster.gpu=NAME after the recipe"));
    }
    // Before minutes go into the first of them.
    const std::string one = GpuOf(parts.front().plan, options), other = GpuOf(part.plan, options);
    if (one != other) {
      return absl::InvalidArgumentError(absl::StrCat("the recipes are of different devices: cluster.gpu is ", one,
                                                     " in ", parts.front().what, ", and ", other, " in ", part.what,
                                                     "; measure each device into a file of its own"));
    }
  }
  const std::string folder = PartsFolder(options.output);
  if (absl::Status status = MakeDirectories(folder); !status.ok()) return status;
  for (size_t i = 0; i < parts.size(); ++i) {
    const MeasurePart& part = parts[i];
    const std::string name = absl::StrCat("part ", i + 1, " of ", parts.size(), ": ", part.what, ", ",
                                          part.plan.world_size, part.plan.world_size == 1 ? " rank" : " ranks");
    if (std::optional<DeviceProfile> done = DoneBefore(options, part.plan)) {
      options.progress(absl::StrCat(name, ": measured before"));
      profiles.push_back(*std::move(done));
      continue;
    }
    options.progress(name);
    const Clock::time_point begin = Clock::now();
    RunOptions run;
    run.executor = options.executor;
    run.device = options.device;
    run.run_dir = absl::StrCat(folder, "/", part.plan.digest.substr(0, 16), ".run");
    run.steps = std::min(kLastTraced, part.plan.budget.steps);
    run.profile = StepRange{std::min(kFirstTraced, *run.steps), *run.steps};
    std::error_code error;
    fs::remove_all(run.run_dir, error);  // of a part that was interrupted
    if (absl::Status status = CheckRun(part.plan, run); !status.ok()) return status;
    absl::StatusOr<Outcome> outcome = Run(part.plan, run);
    if (!outcome.ok()) return outcome.status();
    if (outcome->exit_code != kExitSuccess) {
      measured.failed = *std::move(outcome);
      measured.failed_part = part.what, measured.failed_run = run.run_dir;
      return measured;
    }
    absl::StatusOr<DeviceProfile> profile = ProfileOf(part.plan, run, GpuOf(part.plan, options));
    if (!profile.ok()) return profile.status();
    if (absl::Status status = WriteFileAtomically(PartPath(options, part.plan), WriteProfile(*profile)); !status.ok())
      return status;
    fs::remove_all(run.run_dir, error);
    const double seconds = SecondsSince(begin);
    spent += seconds, ++ran;
    int64_t left = 0;
    for (size_t next = i + 1; next < parts.size(); ++next) left += !DoneBefore(options, parts[next].plan);
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
  measured.profile = Merged(profiles);
  if (absl::Status status = WriteFileAtomically(options.output, WriteProfile(measured.profile)); !status.ok())
    return status;
  std::error_code error;
  fs::remove_all(folder, error);
  return measured;
}

}  // namespace planwright
