#include "planner/run/measure/part_profile.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/run/launch/local_starter.h"
#include "planner/run/launch/rank_starter.h"
#include "planner/run/launch/run_options.h"
#include "planner/run/launch/work_beside.h"
#include "planner/run/launch_run.h"
#include "planner/run/measure/measure_traces.h"
#include "planner/run/measure/plan_rounds.h"
#include "planner/run/measure/skewed_routing.h"
#include "planner/run/measure/traced_steps.h"
#include "planner/wire/records/outcome.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

// PROFILE.json.parts/0123456789abcdef, or with "-fullest-2" behind it.
std::string PathOf(const MeasureOptions& options, const MeasurePart& part) {
  const std::string path = absl::StrCat(PartsFolder(options.output), "/", part.plan.digest.substr(0, 16));
  return part.fullest > 0 ? absl::StrCat(path, "-fullest-", part.fullest) : path;
}

std::string PartPath(const MeasureOptions& options, const MeasurePart& part) { return PathOf(options, part) + ".json"; }

int NodesOf(const Plan& plan, const MeasureOptions& options) {
  return options.starter == nullptr ? 1 : (plan.world_size - 1) / plan.cluster.gpus_per_node + 1;
}

// "1 host, 2 cores, 8 GB"; "4 hosts, 2 cores each, 8 GB each", as this one has.
std::string HostsText(int hosts) {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return absl::StrFormat("%d %s, %d %s%s, %.0f GB%s", hosts, hosts == 1 ? "host" : "hosts", cores,
                         cores == 1 ? "core" : "cores", hosts == 1 ? "" : " each", memory / 1e9,
                         hosts == 1 ? "" : " each");
}

// "2026-11-24", UTC
std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  return absl::StrFormat("%04d-%02d-%02d", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
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

// Does `work`, which may take long. Agents hear from this head meanwhile (work_beside.h). `signal`: that came.
template <typename Work>
auto BesideAgents(const MeasureOptions& options, int& signal, Work&& work) {
  if (options.starter == nullptr) return work();
  std::atomic<int> came = signal;
  auto result = WorkBeside(*options.starter, came, std::forward<Work>(work));
  signal = came;
  return result;
}

// A part that took longer than this is ended, and is an error.
constexpr int kLongestPartSeconds = 8 * 60;

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

absl::StatusOr<Outcome> RunWith(const Plan& plan, const RunOptions& options, RankStarter& starter) {
  Alarm alarm;
  // What ranks print is in their logs.
  absl::StatusOr<Outcome> outcome = LaunchRun({plan}, options, starter, [](bool, std::string_view) {});
  if (alarm.Stop() && outcome.ok() && outcome->exit_code != kExitSuccess) {
    return absl::DeadlineExceededError(absl::StrCat("a part may take ", kLongestPartSeconds / 60,
                                                    " minutes, and this one was not done by then: measure a recipe "
                                                    "with shorter steps, such as one with fewer layers"));
  }
  return outcome;
}

// Runs a plan with `starter`, or with null on this machine. What ranks print is only in their logs. DeadlineExceeded if
// it took too long; other errors are those of LaunchRun.
absl::StatusOr<Outcome> RunPart(const Plan& plan, const RunOptions& run, RankStarter* starter) {
  if (starter != nullptr) return RunWith(plan, run, *starter);
  absl::StatusOr<LocalStarter> here = LocalStarter::Open(plan.launch.interface);
  if (!here.ok()) return here.status();
  return RunWith(plan, run, *here);
}

}  // namespace

Plan Placed(Plan plan, const MeasureOptions& options) {
  if (options.starter == nullptr) plan.cluster.gpus_per_node = plan.world_size;
  plan.cluster.profile = {};
  return plan;
}

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
  run.passed_on = options.passed_on;
  run.run_dir = path + ".run";
  run.profile = TracedSteps(part.plan, OnGpus(part.plan, run));
  run.steps = run.profile->last;
  run.joins_traces = false;
  std::error_code error;
  const std::string choices = path + ".choices";
  const absl::Cleanup remove = [&] { fs::remove_all(choices, error); };
  CommunicationRounds rounds;
  const absl::Status prepared = BesideAgents(options, signal, [&]() -> absl::Status {
    fs::remove_all(run.run_dir, error), fs::remove_all(choices, error);  // of a part that was interrupted
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
    return CheckRun(part.plan, run);
  });
  if (signal != 0) raise(std::exchange(signal, 0));  // held: the supervisor of the run reads it
  if (!prepared.ok()) return prepared;
  absl::StatusOr<Outcome> outcome = RunPart(part.plan, run, options.starter);
  if (!outcome.ok()) return outcome.status();
  if (outcome->exit_code != kExitSuccess) {
    measured.failed = *std::move(outcome);
    measured.failed_part = part.what, measured.failed_run = run.run_dir;
    return DeviceProfile();
  }
  absl::StatusOr<DeviceProfile> profile =
      BesideAgents(options, signal, [&] { return ProfileOf(part, rounds, run, options); });
  const auto incomplete = [&](const char* what, const absl::Status& status) {
    measured.failed =
        Outcome{kExitStorage, absl::StrCat("the run is done, but its ", what, " are incomplete: ", status.message())};
    measured.failed_part = part.what, measured.failed_run = run.run_dir;
    return DeviceProfile();
  };
  if (!profile.ok()) return incomplete("traces", profile.status());
  if (options.base) {
    const absl::StatusOr<double> seconds = MedianStep(run.run_dir, *run.profile);
    if (!seconds.ok()) return incomplete("records of steps", seconds.status());
    measured.probed.push_back({.what = part.what, .seconds = *seconds});
  }
  if (absl::Status status = WriteFileAtomically(PartPath(options, part), WriteProfile(*profile)); !status.ok())
    return status;
  BesideAgents(options, signal, [&] { return fs::remove_all(run.run_dir, error); });
  return profile;
}

}  // namespace planwright
