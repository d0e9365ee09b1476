#include "executor/rank/rank_main.h"

#include <ATen/Parallel.h>
#include <absl/strings/str_cat.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/communication/rendezvous.h"
#include "executor/log/log.h"
#include "executor/program/instruction_text.h"
#include "executor/program/probe_writer.h"
#include "executor/program/program_walker.h"
#include "executor/program/step_profile.h"
#include "executor/rank/host_memory.h"
#include "executor/rank/initial_state.h"
#include "executor/rank/leave.h"
#include "executor/rank/memory_report.h"
#include "executor/rank/run_checkpoints.h"
#include "executor/rank/setup.h"
#include "executor/rank/stop_request.h"
#include "executor/rank/storage_progress.h"
#include "executor/rank/torch_warnings.h"
#include "executor/rank/watchdog.h"
#include "executor/telemetry/start_up.h"
#include "planner/checkpoint/run_lives.h"
#include "planner/estimate/deadlines.h"
#include "planner/plan/json_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/file_io.h"
#include "planner/run_files/run_timeout.h"
#include "planner/run_files/trace.h"

namespace planwright::executor {
namespace {

struct Options {
  std::string plan, run_dir, probe, device, record_routing, replay_routing;
  std::optional<int64_t> steps;
  int life = 1;
  std::optional<StepRange> profile;
};

// Gloo throws on a thread of its own when a peer breaks its protocol. No code of ours is on that stack, so the
// exception ends in std::terminate, and this is the only place that can still report it.
[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      Leave(ExitStatusOf(FailureKindOf(exception)), MessageOf(exception));
    } catch (...) {
      // Not a std::exception: it has no message. Falls through to the last line.
    }
  }
  Leave(kExitInternal, "the process was ended by std::terminate");
}

int StatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition: return kExitPlanMismatch;
    case absl::StatusCode::kUnavailable: return kExitPeerLost;
    case absl::StatusCode::kResourceExhausted: return kExitStorage;
    case absl::StatusCode::kDataLoss: return kExitDamaged;
    case absl::StatusCode::kAborted: return kExitReplaced;
    default: return kExitUsage;
  }
}

// Where the records of steps go that this life does again. Only lives of runs with checkpoints do.
std::string DroppedSteps(const Options& options) {
  return LifeFolder(options.run_dir, options.life) + "/" + kDroppedStepsFile;
}

void LeaveUnlessOk(const absl::Status& status) {
  if (!status.ok()) Leave(StatusOf(status), "executor: " + std::string(status.message()));
}

Options ReadOptions(int argc, char** argv) {
  Options options;
  const auto usage = [](const std::string& problem) {
    Leave(kExitUsage, "executor: " + problem +
                          "\nusage: executor --plan FILE --run-dir DIR [--life N] [--probe DIR] [--steps N] "
                          "[--trace STEP[-LAST]] [--record-routing DIR | --replay-routing DIR] [--device cpu|cuda]");
  };
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) usage(name + " needs a value");
    const std::string value = argv[i + 1];
    if (name == "--plan")
      options.plan = value;
    else if (name == "--run-dir")
      options.run_dir = value;
    else if (name == "--probe")
      options.probe = value;
    else if (name == "--record-routing")
      options.record_routing = value;
    else if (name == "--replay-routing")
      options.replay_routing = value;
    else if (name == "--device" && (value == "cpu" || value == "cuda"))
      options.device = value;
    else if (name == "--steps" && std::atoll(value.c_str()) > 0)
      options.steps = std::atoll(value.c_str());
    else if (name == "--life" && std::atoi(value.c_str()) > 0)
      options.life = std::atoi(value.c_str());
    else if (name == "--trace" && ReadStepRange(value).ok())
      options.profile = *ReadStepRange(value);
    else
      usage("unknown option or value: " + name + " " + value);
  }
  if (!options.record_routing.empty() && !options.replay_routing.empty())
    usage("--record-routing and --replay-routing exclude each other");
  if (options.plan.empty() || options.run_dir.empty()) usage("--plan and --run-dir are required");
  return options;
}

Plan ReadPlanFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kPlanJson.bytes);
  if (!text.ok()) Leave(kExitUsage, "executor: " + std::string(text.status().message()));
  absl::StatusOr<Plan> plan = ReadPlan(*text);
  if (!plan.ok()) Leave(kExitUsage, "executor: " + path + ": " + std::string(plan.status().message()));
  return *std::move(plan);
}

DeadlineRule DeadlinesOf(const Plan& plan) {
  const absl::StatusOr<std::optional<std::chrono::milliseconds>> given = DeadlineOverride();
  LeaveUnlessOk(given.status());
  if (!given->has_value()) return DeadlineRuleOf(plan);
  const double seconds = std::chrono::duration<double>(**given).count();
  return {.floor = seconds, .first_step = seconds};
}

// The longest time for which ranks wait for each other.
std::chrono::milliseconds LongestWait(const DeadlineRule& deadlines) {
  constexpr double kMost = 1e9;  // seconds, as in run_timeout.cc
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * std::min(deadlines.OfWaiting().first, kMost)));
}

// A hang, or a failure that a backend noticed, is reported in the same form as the walker's own errors.
Watchdog::Duties WatchdogDuties(const Plan& plan, const std::string& self, at::Device device) {
  // Gloo has time-outs of its own, and its errors say more. On CPUs the watchdog waits a little longer, so that Gloo
  // reports first.
  return {.patience = device.is_cpu() ? std::chrono::seconds(2) : std::chrono::seconds(0),
          .bytes_moved = BytesMoved,
          .find_failure = [device] { return FindFailure(device); },
          .end =
              [&plan, self](FailureKind kind, const std::optional<RecordedInstruction>& at, const std::string& what) {
                const std::string origin = at ? OriginText(plan, at->origin) : "";
                Leave(ExitStatusOf(kind), absl::StrCat(self, at ? absl::StrCat(at->path, ": ", at->text, ": ") : "",
                                                       what, origin.empty() ? "" : "\n  recipe: ", origin));
              }};
}

// From here on an instruction counts as done when the GPU has done it. (On CPUs: when its call has returned.)
void FollowDevice(at::Device device, Recorder& recorder) {
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) recorder.Follow(MakeCudaCompletion());
#endif
}

// What somebody who finds this log alone must know.
void LogStart(const Plan& plan, const Environment& environment, const Role& role, int life) {
  LogInfo(absl::StrCat("planwright ", kToolVersion, ", LibTorch ", TORCH_VERSION, ": rank ", environment.rank, " of ",
                       environment.world_size, " on ", environment.host, ", process ", getpid(), ", life ", life));
  LogInfo(absl::StrCat("plan ", plan.name, ", digest ", plan.digest, ", role ", role.name));
}

// Creates this rank's communicators. Each one is recorded like an instruction: if a rank never comes, the others wait
// here, and the report says for which communicator.
Communicators JoinGroups(const Plan& plan, const Environment& environment, at::Device device,
                         c10::intrusive_ptr<c10d::Store> store, Recorder& recorder, StartUp& start_up) {
  start_up.Enter("communicators");
  size_t place = 0;
  return Communicators::Make(
      plan, environment.rank, device.is_cpu() ? Backend::kGloo : Backend::kNccl, store, environment.nonce,
      environment.own_address, environment.timeout, [&](const std::string& name) {
        LogInfo("join " + name);
        recorder.Begin(RecorderState::kWaiting, 0, -1, -1, "joining", place++, "join " + name, environment.timeout);
      });
}

}  // namespace

int RankMain(int argc, char** argv, const RankMainHooks& hooks) {
  StartUp start_up;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe or socket is reported by the call that writes to it
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow (ulimit -f)
  std::set_terminate(OnTerminate);
  ReportRefusedHostMemory();
  at::set_num_threads(1);  // sums must not depend on the number of cores, and ranks of one machine share them

  const Options options = ReadOptions(argc, argv);
  start_up.Enter("plan");
  Plan loaded = ReadPlanFile(options.plan);
  LeaveUnlessOk(hooks.prepare(loaded));
  const Plan& plan = loaded;
  const int64_t steps = std::min(plan.budget.steps, options.steps.value_or(plan.budget.steps));
  if (options.profile) LeaveUnlessOk(CheckStepRange(*options.profile, steps));
  absl::StatusOr<Environment> environment = ReadEnvironment();
  LeaveUnlessOk(environment.status());
  if (environment->world_size != plan.world_size) {
    Leave(kExitUsage, "executor: WORLD_SIZE=" + std::to_string(environment->world_size) + " but the plan has " +
                          std::to_string(plan.world_size) + " ranks");
  }
  const Role* role = plan.RoleOf(environment->rank);
  if (role == nullptr)
    Leave(kExitUsage, "executor: the plan has no role for rank " + std::to_string(environment->rank));

  // A rank that was cut off while it started must not touch the files of the life that replaced it.
  LeaveUnlessOk(OpenLog(options.run_dir, environment->rank, [&] {
    return plan.checkpoint.every_steps > 0 ? CheckNoNewerLife(options.run_dir, options.life) : absl::OkStatus();
  }));
  LogTorchWarnings();
  LogStart(plan, *environment, *role, options.life);
  absl::StatusOr<std::unique_ptr<Recorder>> recorder =
      Recorder::Open(options.run_dir, environment->rank, environment->host);
  LeaveUnlessOk(recorder.status());
  SetRecorderOfLeave(**recorder);

  start_up.Enter("peers");
  absl::StatusOr<c10::intrusive_ptr<c10d::Store>> store = OpenStore(*environment);
  LeaveUnlessOk(store.status());
  LeaveUnlessOk(AgreeOnPlan(*environment, plan.digest, **store));
  // From here on ranks wait for each other's work, and no longer for each other's start.
  const DeadlineRule deadlines = DeadlinesOf(plan);
  environment->timeout = LongestWait(deadlines);
  (*store)->setTimeout(environment->timeout);

  std::unique_ptr<StepLog> log;
  std::optional<EventFile> events;
  if (environment->rank == 0) {
    LeaveUnlessOk(StepLog::Open(options.run_dir, log));
    events.emplace(plan, options.run_dir, options.life, environment->host);
  }
  start_up.Enter("device");
  const absl::StatusOr<at::Device> device = ChooseDevice(plan, options.device, environment->local_rank);
  LeaveUnlessOk(device.status());
  SetDeviceOfLeave(*device);
  LogInfo("device " + device->str());
  FollowDevice(*device, **recorder);
  const std::string self = absl::StrCat("rank ", environment->rank, " on ", environment->host, ": ");
  const Watchdog watchdog(**recorder, WatchdogDuties(plan, self, *device));
  std::optional<ProbeWriter> probe;
  if (!options.probe.empty()) probe.emplace(options.probe, environment->rank);
  std::optional<StepProfile> profile;
  if (options.profile) profile.emplace(options.run_dir, *options.profile);
  const auto leave = [](int status, const std::string& what) { Leave(status, what); };
  std::optional<RunCheckpoints> checkpoints;
  bool resumes = false;
  if (plan.checkpoint.every_steps > 0) {
    ListenForStop();
    checkpoints.emplace(plan, *environment, options.run_dir, options.life, **store, leave, hooks.fail_point);
    const absl::StatusOr<bool> chosen = checkpoints->Choose();
    LeaveUnlessOk(chosen.status());
    resumes = *chosen;
    // A life before this one may have done steps, but kept none of them.
    if (!resumes && log != nullptr) {
      LeaveUnlessOk(checkpoints->CheckNotReplaced());
      LeaveUnlessOk(log->KeepUpTo(0, DroppedSteps(options)));
    }
  }
  std::unique_ptr<InitialState> initial;
  if (plan.initialize && !resumes) {  // checkpoints of the run itself come first
    absl::StatusOr<std::unique_ptr<InitialState>> chosen = InitialState::Choose(plan, *environment, **store);
    LeaveUnlessOk(chosen.status());
    initial = *std::move(chosen);
  }
  const int64_t first_step = resumes ? checkpoints->first_step() : initial ? initial->first_step() : 0;
  if (options.profile && options.profile->first <= first_step) {
    LeaveUnlessOk(absl::InvalidArgumentError(absl::StrCat("--trace begins at step ", options.profile->first,
                                                          ", but the run goes on after step ", first_step)));
  }

  // A failure ends the process in the catch clause, while everything still exists: `rank` lives outside the try block,
  // so that no destructor of a communicator runs and waits for a peer that is gone.
  std::optional<Rank> rank;
  int exit_status = kExitSuccess;
  try {
    start_up.Enter("data");
    Handlers samples;
    ReadSamples(plan, *device, samples);
    rank.emplace(
        Rank{.plan = plan,
             .role = *role,
             .rank = environment->rank,
             .device = *device,
             .handlers = {.compute = hooks.compute,
                          .data = samples.data,
                          .parameters =
                              [&](OpKind kind, ModuleState& module) {
                                start_up.Enter("weights");
                                if (kind == OpKind::kLoadParameters)
                                  initial->Load(module, rank->step);
                                else
                                  DrawParameters(plan, environment->rank, module);
                                start_up.Enter("memory");
                              },
                          .data_of_steps = samples.data_of_steps},
             .communicators = JoinGroups(plan, *environment, *device, *store, **recorder, start_up),
             .step = StepState(plan, *device),
             .recorder = **recorder,
             .log = log.get(),
             .events = events ? &*events : nullptr,
             .probe = probe ? &*probe : nullptr,
             .profile = profile ? &*profile : nullptr,
             .first_step = first_step,
             .last_step = steps - 1,
             .deadlines = deadlines,
             .resumes = resumes,
             .host = environment->host,
             .resume_again =
                 [&] {
                   const absl::StatusOr<bool> again = checkpoints->TryAgain();
                   LeaveUnlessOk(again.status());
                   if (*again) return true;
                   rank->first_step = checkpoints->first_step();
                   if (log == nullptr) return false;
                   LeaveUnlessOk(checkpoints->CheckNotReplaced());
                   LeaveUnlessOk(log->KeepUpTo(rank->first_step * plan.budget.global_samples, DroppedSteps(options)));
                   return false;
                 },
             .ready =
                 [&] {
                   initial.reset();
                   if (checkpoints) {
                     start_up.Enter("checkpoint memory");
                     checkpoints->Prepare(rank->device);
                   }
                   const std::string ready = start_up.Line();
                   LogInfo(ready);
                   if (environment->rank != 0) return;
                   LeaveUnlessOk(events->Begin(rank->first_step));
                   std::printf("%s\n", ready.c_str());
                   if (rank->first_step >= steps)
                     std::printf("%s\n", absl::StrCat("nothing to do: all ", steps, " steps are done").c_str());
                   std::fflush(stdout);
                 },
             .asked_to_stop = checkpoints ? AskedToStop : std::function<bool()>(),
             .before_instruction = hooks.before_instruction,
             .fail_point = hooks.fail_point,
             .leave = leave});
    if (checkpoints) {
      rank->handlers.storage = [&](OpKind kind, ModuleState* module, StepState& step) {
        if (kind == OpKind::kLoadState) start_up.Enter("weights");
        checkpoints->Run(kind, module, step);
        if (kind == OpKind::kLoadState) start_up.Enter("memory");
      };
    }
    start_up.Enter("memory");
    FollowRouting(options.record_routing, options.replay_routing, rank->handlers);
    const bool whole = ProgramWalker(*rank).Run();
    if (checkpoints) checkpoints->Finish();
    if (log != nullptr) LeaveUnlessOk(log->Close());
    if (events) LeaveUnlessOk(events->Close());
    LeaveUnlessOk(WriteMemoryReport(options.run_dir, *rank));
    exit_status = whole ? kExitSuccess : kExitPreempted;
    (*recorder)->Done();
    LogInfo(whole ? "done" : "stopped as asked, with a checkpoint");
    // If rank 0 serves the store, it must be the last to leave.
    WaitForAll(*environment, "done", environment->timeout, **store);
  } catch (const ExitError& error) {
    Leave(error.status(), error.what());
  } catch (const std::exception& error) {
    Leave(ExitStatusOf(FailureKindOf(error)),
          self + (rank ? "" : "while joining the groups of the plan: ") + MessageOf(error));
  }
  // _exit: static destructors of LibTorch, NCCL and CUDA may wait for each other, and nothing is left to write.
  std::fflush(nullptr);
  _exit(exit_status);
}

}  // namespace planwright::executor
