#include "tests/numerics/mutant_run.h"

#include <exception>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>

#include "executor/ops/forms.h"
#include "executor/program/probe_writer.h"
#include "executor/program/program_walker.h"
#include "executor/rank/handlers.h"
#include "executor/rank/initial_state.h"
#include "planner/run/outcome/assemble_probe.h"

namespace planwright::testing {
namespace {

void WalkOneStep(const Plan& plan, const std::string& folder) {
  using namespace executor;
  c10d::HashStore store;
  const Environment alone = {.rank = 0, .world_size = 1, .host = "here"};
  auto initial = InitialState::Choose(plan, InitialState::Purpose::kTrain, alone, store);
  if (!initial.ok()) throw std::runtime_error(std::string(initial.status().message()));
  auto recorder = Recorder::Open(folder, 0, "here");
  std::unique_ptr<StepLog> log;
  if (const absl::Status opened = StepLog::Open(folder, log); !recorder.ok() || !opened.ok())
    throw std::runtime_error("no files in " + folder);
  ProbeWriter probe(folder, 0);
  Handlers handlers = {.compute = ChooseForm,
                       .parameters = [&](OpKind, ModuleState& module, StepState& step, ManifestNotes& notes) {
                         (*initial)->Load(module, step, notes);
                       }};
  const RankSamples samples = OpenSamples(plan, plan.roles.at(0), /*trains=*/true, /*follows_routing=*/false);
  ReadSamples(plan, samples, at::kCPU, /*prints=*/false, handlers);
  Rank rank{.plan = plan,
            .role = plan.roles.at(0),
            .host = "here",
            .device = at::kCPU,
            .communicators = {},
            .step = StepState(plan, at::kCPU)};
  Walk walk{.handlers = std::move(handlers), .files = {.recorder = **recorder, .log = log.get(), .probe = &probe}};
  ProgramWalker(rank, walk).Run();
}

}  // namespace

FirstStep RunFirstStep(const Plan& plan, const std::string& folder) {
  FirstStep first;
  try {
    WalkOneStep(plan, folder);
  } catch (const std::exception& error) {
    first.failure = error.what();
    return first;
  }
  if (const absl::Status joined = AssembleProbe(plan, folder); !joined.ok()) {
    first.failure = std::string(joined.message());
    return first;
  }
  first.values = ReadTensors(folder + "/values_first.safetensors");
  first.gradients = ReadTensors(folder + "/gradients_first.safetensors");
  nlohmann::json metrics;
  std::ifstream(folder + "/metrics.jsonl") >> metrics;
  first.loss = metrics.at("loss");
  const auto& rows = metrics.at("bridge_mean_square");
  first.mean_square = rows.empty() ? 0 : rows.begin().value().get<double>();
  return first;
}

}  // namespace planwright::testing
