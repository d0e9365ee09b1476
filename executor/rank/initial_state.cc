#include "executor/rank/initial_state.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "executor/log/log.h"
#include "executor/program/exit_error.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/threads/threads.h"
#include "planner/state/checkpoint/plan_fit.h"
#include "planner/state/weights/base_digest.h"
#include "planner/state/weights/parts.h"
#include "planner/state/weights/read_values.h"

namespace planwright::executor {
namespace {

constexpr size_t kLongestError = kStoreValueJson.bytes / 4;  // a character may take several bytes as JSON

// What rank 0 has found.
struct Choice {
  std::map<std::string, std::string> chosen;  // InitialState::chosen_
  int64_t first_step = 0;
  std::map<std::string, std::string> base;  // InitialState::base_
};

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// What a person named and cannot be used is no failure of the run's storage, nor of a rank.
absl::Status OfInput(const absl::Status& status) {
  if (status.ok() || absl::IsDataLoss(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat("initialize: ", status.message()));
}

// "PATH", or "PATH (radio_encoder.backbone), drawn weights (language)".
std::string SourcesText(const Plan& plan, const WeightsFit& fit, InitialState::Purpose purpose) {
  if (!plan.initialize->from.empty()) return fit.sources.at(0).path;
  std::set<std::string> others;  // that adapters do not stand on
  for (const WeightPart& part : PartsOf(plan)) {
    if (purpose == InitialState::Purpose::kStandOn && CheckpointsHave(part)) others.insert(part.name);
  }
  std::vector<std::string> texts;
  for (const PartFit& part : fit.parts) {
    if (others.contains(part.part)) continue;
    texts.push_back(absl::StrCat(part.source < 0 ? "draws" : fit.sources[static_cast<size_t>(part.source)].path, " (",
                                 part.part, ")"));
  }
  return absl::StrJoin(texts, ", ");
}

absl::StatusOr<Choice> ChooseHere(const Plan& plan, InitialState::Purpose purpose) {
  const InitializePlan& initialize = *plan.initialize;
  WeightsFit fit = FitWeights(plan);
  for (const std::string& line : fit.warnings) Say("warning: " + line);
  if (fit.fits()) fit.problems = WrongExtras(fit);
  if (absl::Status status = fit.status(); !status.ok()) return OfInput(status);
  Choice choice;
  for (const SourceFit& source : fit.sources) choice.chosen[source.named] = source.path;
  absl::StatusOr<std::map<std::string, std::string>> base = BaseDigests(plan, fit);
  if (!base.ok()) return OfInput(base.status());
  choice.base = *std::move(base);
  if (const absl::Status stand = CheckBaseOfAdapters(plan, fit); !stand.ok()) return OfInput(stand);
  if (purpose == InitialState::Purpose::kStandOn) {
    Say("the adapters stand on the weights of " + SourcesText(plan, fit, purpose));
    return choice;
  }
  if (initialize.schedule == "checkpoint") {
    const WeightSource& source = *fit.sources.at(0).opened;
    const absl::StatusOr<int64_t> done = StepsDone(plan, source.path(), source.checkpoint()->manifest().counters);
    if (!done.ok()) return OfInput(done.status());
    choice.first_step = *done;
  }
  if (purpose == InitialState::Purpose::kEvaluate) {
    Say("evaluating the weights of " + SourcesText(plan, fit, purpose));
    return choice;
  }
  Say(absl::StrCat("beginning at step ", choice.first_step + 1, " with the weights",
                   initialize.optimizer ? " and the optimizer" : "", " of ", SourcesText(plan, fit, purpose)));
  return choice;
}

}  // namespace

absl::StatusOr<std::unique_ptr<InitialState>> InitialState::Choose(const Plan& plan, Purpose purpose,
                                                                   const Environment& environment, c10d::Store& store) {
  constexpr char kKey[] = "initialize/choice";
  std::unique_ptr<Plan> standing;
  if (purpose == Purpose::kStandOn) {
    standing = std::make_unique<Plan>(plan);
    standing->initialize = NeededToGoOn(plan);
  }
  try {
    if (environment.rank == 0) {
      const absl::StatusOr<Choice> made = ChooseHere(standing ? *standing : plan, purpose);
      const Choice choice = made.ok() ? *made : Choice{};
      store.set(kKey, nlohmann::json{{"chosen", choice.chosen},
                                     {"first_step", choice.first_step},
                                     {"base", choice.base},
                                     {"code", static_cast<int>(made.status().code())},
                                     {"error", std::string(made.status().message()).substr(0, kLongestError)}}
                          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    const nlohmann::json choice = ParseJson(store.get_to_str(kKey), kStoreValueJson).value();
    if (const int code = choice.at("code"); code != 0)
      return absl::Status(static_cast<absl::StatusCode>(code), choice.at("error").get<std::string>());
    return std::unique_ptr<InitialState>(new InitialState(
        plan, std::move(standing), environment.rank, choice.at("chosen").get<std::map<std::string, std::string>>(),
        choice.at("first_step"), choice.at("base").get<std::map<std::string, std::string>>()));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("agreeing on initialize: ", error.what()));
  }
}

void InitialState::Load(ModuleState& module, StepState& step, ManifestNotes& notes) {
  const auto begin = std::chrono::steady_clock::now();
  absl::Status status;
  if (weights_ == nullptr) {
    absl::StatusOr<std::unique_ptr<InitialWeights>> opened = InitialWeights::Open(plan_, rank_, chosen_);
    status = opened.status();
    if (status.ok()) weights_ = *std::move(opened);
  }
  const int64_t before = weights_ ? weights_->bytes_read() : 0;
  if (status.ok()) status = weights_->Load(module, ThreadsOfRank());
  if (!status.ok())
    throw ExitError(absl::IsDataLoss(status) ? kExitDamaged : kExitUsage, std::string(OfInput(status).message()));
  weights_->LoadCounters(step, notes);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  LogInfo(absl::StrFormat("read %d bytes of weights of module %s in %.3f s", weights_->bytes_read() - before,
                          module.module().name, seconds.count()));
  for (const std::string& line : weights_->Warnings(module)) LogWarning(line);
}

}  // namespace planwright::executor
