#include "executor/rank_main.h"

#include <ATen/Parallel.h>
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/communication/rendezvous.h"
#include "executor/instruction_text.h"
#include "executor/leave.h"
#include "executor/probe_writer.h"
#include "executor/run_program.h"
#include "executor/setup.h"
#include "executor/watchdog.h"
#include "planner/plan/plan_json.h"
#include "planner/run_files/exit_status.h"

namespace planwright::executor {
namespace {

struct Options {
  std::string plan, run_dir, probe, device;
  std::optional<int64_t> steps;
};

// Gloo ends the process from a thread of its own when a peer breaks the protocol; that cannot be caught anywhere else.
[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      Leave(ExitStatusOf(KindOf(exception)), WordsOf(exception));
    } catch (...) {
    }
  }
  Leave(kExitInternal, "ended by std::terminate");
}

int StatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition: return kExitPlanMismatch;
    case absl::StatusCode::kUnavailable: return kExitPeerLost;
    case absl::StatusCode::kResourceExhausted: return kExitStorage;
    case absl::StatusCode::kDataLoss: return kExitDamaged;
    default: return kExitUsage;
  }
}

void Check(const absl::Status& status) {
  if (!status.ok()) Leave(StatusOf(status), "executor: " + std::string(status.message()));
}

Options ReadOptions(int argc, char** argv) {
  Options options;
  const auto usage = [](const std::string& problem) {
    Leave(kExitUsage, "executor: " + problem +
                          "\nusage: executor --plan FILE --run-dir DIR [--probe DIR] [--steps N] [--device cpu|cuda]");
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
    else if (name == "--device" && (value == "cpu" || value == "cuda"))
      options.device = value;
    else if (name == "--steps" && std::atoll(value.c_str()) > 0)
      options.steps = std::atoll(value.c_str());
    else
      usage("unknown option or value: " + name + " " + value);
  }
  if (options.plan.empty() || options.run_dir.empty()) usage("--plan and --run-dir are needed");
  return options;
}

Plan ReadPlanFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Leave(kExitUsage, "executor: cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  absl::StatusOr<Plan> plan = ReadPlan(text.str());
  if (!plan.ok()) Leave(kExitUsage, "executor: " + path + ": " + std::string(plan.status().message()));
  return *std::move(plan);
}

// What hangs or fails where the walker cannot say so is told like what it says itself.
Watchdog::Duties DutiesOf(const Plan& plan, const std::string& self, at::Device device,
                          std::chrono::milliseconds timeout) {
  // Gloo has deadlines of its own, and knows more when one passes.
  const auto patience = device.is_cpu() ? std::chrono::seconds(2) : std::chrono::seconds(0);
  return {.limit = timeout + patience,
          .find_failure = [device] { return FindFailure(device); },
          .end =
              [&plan, self](FailureKind kind, const std::optional<RecordedInstruction>& at, const std::string& what) {
                const std::string origin = at ? OriginText(plan, at->origin) : "";
                Leave(ExitStatusOf(kind), absl::StrCat(self, at ? absl::StrCat(at->path, ": ", at->text, ": ") : "",
                                                       what, origin.empty() ? "" : "\n  recipe: ", origin));
              }};
}

// From here on an instruction is done when the device has done it.
void Follow(at::Device device, Recorder& recorder) {
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) recorder.Follow(MakeCudaCompletion());
#endif
}

// Each group to be joined is on record like an instruction: a rank that never comes leaves the others waiting here.
Communicators Join(const Plan& plan, const Environment& environment, at::Device device,
                   c10::intrusive_ptr<c10d::Store> store, Recorder& recorder) {
  size_t place = 0;
  return Communicators::Make(plan, environment.rank, device.is_cpu() ? Backend::kGloo : Backend::kNccl, store,
                             environment.nonce, environment.address, environment.timeout, [&](const std::string& name) {
                               recorder.Begin(RecorderState::kWaiting, 0, -1, -1, "joining", place++, "join " + name);
                             });
}

}  // namespace

int RankMain(int argc, char** argv, const RankSetup& setup) {
  std::signal(SIGPIPE, SIG_IGN);
  std::set_terminate(OnTerminate);
  at::set_num_threads(1);

  const Options options = ReadOptions(argc, argv);
  Plan loaded = ReadPlanFile(options.plan);
  Check(setup.prepare(loaded));
  const Plan& plan = loaded;
  const absl::StatusOr<Environment> environment = ReadEnvironment();
  Check(environment.status());
  if (environment->world_size != plan.world_size) {
    Leave(kExitUsage, "executor: WORLD_SIZE=" + std::to_string(environment->world_size) + " but the plan has " +
                          std::to_string(plan.world_size) + " ranks");
  }
  const Role* role = plan.RoleOf(environment->rank);
  if (role == nullptr)
    Leave(kExitUsage, "executor: the plan has no role for rank " + std::to_string(environment->rank));

  absl::StatusOr<std::unique_ptr<Recorder>> recorder =
      Recorder::Open(options.run_dir, environment->rank, environment->host);
  Check(recorder.status());
  LeaveThrough(**recorder);

  absl::StatusOr<c10::intrusive_ptr<c10d::Store>> store = OpenStore(*environment);
  Check(store.status());
  Check(AgreeOnPlan(*environment, plan.digest, **store));

  std::unique_ptr<StepLog> log;
  if (environment->rank == 0) Check(StepLog::Open(options.run_dir, log));
  const absl::StatusOr<at::Device> device = ChooseDevice(plan, options.device, environment->local_rank);
  Check(device.status());
  LeaveThrough(*device);
  Follow(*device, **recorder);
  const std::string self = absl::StrCat("rank ", environment->rank, " on ", environment->host, ": ");
  const Watchdog watchdog(**recorder, DutiesOf(plan, self, *device, environment->timeout));
  std::optional<ProbeWriter> probe;
  if (!options.probe.empty()) probe.emplace(options.probe, environment->rank);

  // Whatever fails ends the process where it is caught: what a rank holds of its peers and its device is not to be
  // destroyed.
  std::optional<Rank> rank;
  try {
    rank.emplace(Rank{.plan = plan,
                      .role = *role,
                      .rank = environment->rank,
                      .device = *device,
                      .handlers = {.compute = setup.compute,
                                   .data = DataHandler(plan, *device),
                                   .parameters = ParameterHandler(plan, environment->rank)},
                      .communicators = Join(plan, *environment, *device, *store, **recorder),
                      .step = StepState(plan, *device),
                      .recorder = **recorder,
                      .log = log.get(),
                      .probe = probe ? &*probe : nullptr,
                      .last_step = std::min(plan.budget.steps, options.steps.value_or(plan.budget.steps)) - 1,
                      .host = environment->host,
                      .before_each = setup.before_each,
                      .leave = [](int status, const std::string& what) { Leave(status, what); }});
    ProgramWalker(*rank).Run(0);
    (*recorder)->Done();
    WaitForAll(*environment, "done", environment->timeout, **store);
  } catch (const ExitError& error) {
    Leave(error.status(), error.what());
  } catch (const std::exception& error) {
    Leave(ExitStatusOf(KindOf(error)), self + (rank ? "" : "while joining the others: ") + WordsOf(error));
  }
  std::fflush(nullptr);
  _exit(kExitSuccess);
}

}  // namespace planwright::executor
