#include "executor/rank_main.h"

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "executor/communication/rendezvous.h"
#include "executor/probe_writer.h"
#include "executor/run_program.h"
#include "executor/setup.h"
#include "planner/cli/exit_status.h"
#include "planner/plan/plan_json.h"

namespace planwright::executor {
namespace {

struct Options {
  std::string plan, run_dir, probe, device;
  std::optional<int64_t> steps;
};

Recorder* recorder_of_this_rank = nullptr;

// Ends at once: destructors of groups would wait for peers that may be gone.
[[noreturn]] void Leave(int status, const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::fflush(nullptr);
  if (recorder_of_this_rank != nullptr) recorder_of_this_rank->Fail(status, message.c_str());
  _exit(status);
}

// Gloo ends the process from a thread of its own when a peer breaks the protocol; that cannot be caught anywhere else.
[[noreturn]] void OnTerminate() {
  std::string message = "ended by std::terminate";
  int status = kExitInternal;
  if (const std::exception_ptr error = std::current_exception()) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      message = exception.what();
      status = kExitPeerLost;
    } catch (...) {
    }
  }
  Leave(status, message);
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
    if (name == "--plan") options.plan = value;
    else if (name == "--run-dir") options.run_dir = value;
    else if (name == "--probe") options.probe = value;
    else if (name == "--device" && (value == "cpu" || value == "cuda")) options.device = value;
    else if (name == "--steps" && std::atoll(value.c_str()) > 0) options.steps = std::atoll(value.c_str());
    else usage("unknown option or value: " + name + " " + value);
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
  if (role == nullptr) Leave(kExitUsage, "executor: the plan has no role for rank " + std::to_string(environment->rank));

  absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Open(options.run_dir, environment->rank, environment->host);
  Check(recorder.status());
  recorder_of_this_rank = recorder->get();

  absl::StatusOr<c10::intrusive_ptr<c10d::Store>> store = OpenStore(*environment);
  Check(store.status());
  Check(AgreeOnPlan(*environment, plan.digest, **store));

  std::unique_ptr<StepLog> log;
  if (environment->rank == 0) Check(StepLog::Open(options.run_dir, log));
  const absl::StatusOr<at::Device> device = ChooseDevice(plan, options.device, environment->local_rank);
  Check(device.status());
  const Backend backend = device->is_cpu() ? Backend::kGloo : Backend::kNccl;
  std::optional<ProbeWriter> probe;
  if (!options.probe.empty()) probe.emplace(options.probe, environment->rank);

  try {
    Rank rank{.plan = plan,
              .role = *role,
              .rank = environment->rank,
              .device = *device,
              .handlers = {.compute = setup.compute,
                           .data = DataHandler(plan, *device),
                           .parameters = ParameterHandler(plan, environment->rank)},
              .communicators = Communicators::Make(plan, environment->rank, backend, *store, environment->nonce,
                                                   environment->address, environment->timeout),
              .step = StepState(plan, *device),
              .recorder = **recorder,
              .log = log.get(),
              .probe = probe ? &*probe : nullptr,
              .last_step = std::min(plan.budget.steps, options.steps.value_or(plan.budget.steps)) - 1,
              .host = environment->host};
    ProgramWalker(rank).Run(0);
    (*recorder)->Done();
    WaitForAll(*environment, "done", environment->timeout, **store);
  } catch (const ExitError& error) {
    Leave(error.status(), error.what());
  } catch (const std::exception& error) {
    Leave(kExitPeerLost, "executor: rank " + std::to_string(environment->rank) + " while joining the others: " + error.what());
  }
  std::fflush(nullptr);
  _exit(kExitSuccess);
}

}  // namespace planwright::executor
