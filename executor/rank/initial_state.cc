#include "executor/rank/initial_state.h"

#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "executor/data/sample_source.h"
#include "executor/optimizer/initialize.h"
#include "executor/program/rank.h"
#include "executor/tensors.h"
#include "executor/threads/threads.h"
#include "planner/checkpoint/plan_fit.h"
#include "planner/checkpoint/run_lives.h"
#include "planner/plan/json_text.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/safetensors.h"

namespace planwright::executor {
namespace {

// What `initialize.from` names.
struct Choice {
  std::string checkpoint;  // folder; empty: a file
  int64_t first_step = 0;
};

std::string PathOf(const Plan& plan) { return ResolvePath(plan.initialize->base, plan.initialize->from); }

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// What a person named and cannot be used is no failure of the run's storage, nor of a rank.
absl::Status OfInput(const absl::Status& status) {
  if (status.ok() || absl::IsDataLoss(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat("initialize.from: ", status.message()));
}

absl::StatusOr<Choice> ChooseCheckpoint(const Plan& plan, const std::string& path) {
  const InitializePlan& initialize = *plan.initialize;
  const absl::StatusOr<NamedCheckpoint> named = FindCheckpoint(path);
  if (!named.ok()) return OfInput(named.status());
  for (const UnusableCheckpoint& one : named->passed)
    Say(absl::StrCat("checkpoint ", one.folder, " is not used: ", one.why));
  const std::string& folder = named->checkpoint.folder;
  const CheckpointCounters& counters = named->checkpoint.manifest.counters;
  Choice choice{folder, 0};
  if (initialize.schedule == "checkpoint") {
    const absl::StatusOr<int64_t> done = StepsDone(plan, folder, counters);
    if (!done.ok()) return OfInput(done.status());
    choice.first_step = *done;
  }
  Say(absl::StrCat("beginning at step ", choice.first_step + 1, " with the weights",
                   initialize.optimizer ? " and the optimizer" : "", " of ", folder));
  return choice;
}

absl::StatusOr<Choice> ChooseHere(const Plan& plan) {
  const InitializePlan& initialize = *plan.initialize;
  const std::string path = PathOf(plan);
  struct stat about {};
  if (stat(path.c_str(), &about) != 0)
    return OfInput(absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno))));
  if (S_ISDIR(about.st_mode)) return ChooseCheckpoint(plan, path);
  if (initialize.optimizer || initialize.schedule == "checkpoint") {
    return OfInput(absl::InvalidArgumentError(
        absl::StrCat(path, " is no folder, and initialize.", initialize.optimizer ? "optimizer" : "schedule",
                     " needs a checkpoint: a file of weights has neither moments nor counters")));
  }
  return Choice{};
}

at::Tensor ReadTensor(const SafetensorsFile& file, const std::string& name, const StoredTensor& stored) {
  const at::Tensor tensor = at::empty(stored.shape, at::TensorOptions(at::kCPU).dtype(ScalarTypeOf(stored.dtype)));
  const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes());
  if (absl::Status read = file.file().Read(stored.offset, bytes); !read.ok())
    throw ExitError(kExitUsage, std::string(read.message()));
  if (const auto at = FirstNotFinite(stored.dtype, bytes))
    throw ExitError(kExitUsage, absl::StrCat(file.path(), ": tensor ", name, NotFinite(*at)));
  return tensor;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InitialState>> InitialState::Choose(const Plan& plan, const Environment& environment,
                                                                   c10d::Store& store) {
  constexpr char kKey[] = "initialize/choice";
  try {
    if (environment.rank == 0) {
      const absl::StatusOr<Choice> made = ChooseHere(plan);
      const Choice choice = made.ok() ? *made : Choice{};
      store.set(kKey, nlohmann::json{{"checkpoint", choice.checkpoint},
                                     {"first_step", choice.first_step},
                                     {"code", static_cast<int>(made.status().code())},
                                     {"error", std::string(made.status().message())}}
                          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    const nlohmann::json choice = ParseJson(store.get_to_str(kKey), kStoreValueJson).value();
    if (const int code = choice.at("code"); code != 0)
      return absl::Status(static_cast<absl::StatusCode>(code), choice.at("error").get<std::string>());
    return std::unique_ptr<InitialState>(
        new InitialState(plan, environment.rank, choice.at("checkpoint"), choice.at("first_step")));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("agreeing on initialize.from: ", error.what()));
  }
}

void InitialState::Load(ModuleState& module, StepState& step) {
  if (checkpoint_.empty()) return LoadFile(module);
  absl::Status status;
  if (loader_ == nullptr) {
    absl::StatusOr<std::unique_ptr<InitialCheckpoint>> opened = InitialCheckpoint::Open(plan_, rank_, checkpoint_);
    status = opened.status();
    if (status.ok()) loader_ = *std::move(opened);
  }
  if (status.ok()) status = loader_->Load(module, ThreadsOfRank());
  if (!status.ok())
    throw ExitError(absl::IsDataLoss(status) ? kExitDamaged : kExitUsage, std::string(OfInput(status).message()));
  loader_->LoadCounters(step);
}

void InitialState::LoadFile(ModuleState& module) const {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(PathOf(plan_));
  if (!file.ok()) throw ExitError(kExitUsage, std::string(OfInput(file.status()).message()));
  std::map<std::string, SourceTensor> sources;
  for (const auto& [name, stored] : file->tensors())
    sources[name] = {stored.shape, [&, name = name, stored = stored] { return ReadTensor(*file, name, stored); }};
  const absl::Status status = CheckSources(plan_, sources);
  if (!status.ok()) throw ExitError(kExitUsage, std::string(status.message()));
  LoadParameters(plan_, rank_, sources, ThreadsOfRank(), module);
}

}  // namespace planwright::executor
