#include "executor/rank/training.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "executor/communication/agreement.h"
#include "executor/log/log.h"
#include "executor/rank/evaluation_stop.h"
#include "executor/rank/exit.h"
#include "executor/rank/handlers.h"
#include "executor/rank/peers.h"
#include "executor/rank/process.h"
#include "planner/base/digest/sha256.h"

namespace planwright::executor {
namespace {

// Of all that is numbered by an index; other kinds of data number their samples by the plan alone.
std::string DigestOf(const RankSamples& samples) {
  std::string digest = samples.source == nullptr ? "" : samples.source->digest();
  if (samples.evaluation.empty()) return digest;
  for (const auto& set : samples.evaluation) digest += " " + set->digest();
  return digest.find_first_not_of(' ') == std::string::npos ? "" : Sha256Hex(digest);
}

bool HasIndexes(const Plan& plan) {
  const auto indexed = [](const EvaluationSet& set) { return RowOf(set.data.kind).indexed; };
  return RowOf(plan.data.kind).indexed ||
         std::any_of(plan.evaluation.sets.begin(), plan.evaluation.sets.end(), indexed);
}

// Memory and sizes of the plan are of the samples that the index had when it was made.
absl::Status CheckCounted(const Plan& plan, const RankSamples& samples) {
  const auto same = [](const CountedSamples& counted, const SampleSource& source) {
    return !counted.known() || counted.digest == source.digest();
  };
  for (const EvaluationSet& set : plan.evaluation.sets) {
    if (set.samples == 0)
      return absl::FailedPreconditionError("evaluation set " + set.name +
                                           " has `samples: all`, and the plan was made before its index counted them: "
                                           "launch the recipe again");
  }
  bool all = samples.source == nullptr || same(plan.data.counted, *samples.source);
  for (size_t i = 0; i < samples.evaluation.size(); ++i)
    all = all && same(plan.evaluation.sets[i].data.counted, *samples.evaluation[i]);
  return all ? absl::OkStatus()
             : absl::FailedPreconditionError(
                   "the plan was made when the index of its data had counted other samples: launch its recipe again");
}

void AgreeOnSamples(const Assignment& assignment, const RankSamples& samples, c10d::Store& store,
                    RunCheckpoints* checkpoints) {
  if (!HasIndexes(assignment.plan)) return;
  const std::string digest = DigestOf(samples);
  if (!digest.empty()) LogInfo("data " + digest);
  ExitUnlessOk(AgreeOnData(assignment.environment, digest, store));
  // After it: one rank alone with other files is named. Without steps, nobody opens the samples of the training, and no
  // checkpoint is written.
  if (RowOf(assignment.plan.data.kind).indexed && assignment.steps > 0) {
    if (samples.source != nullptr) ExitUnlessOk(PostSources(samples.source->SourceDigests(), store));
    if (checkpoints != nullptr)
      ExitUnlessOk(checkpoints->SetSources(ValueOrExit(PostedSources(store)), assignment.options.accepted_data));
  }
  ExitUnlessOk(CheckCounted(assignment.plan, samples));
}

std::optional<StepSpan> Resumed(const TrainingParts& parts) {
  const bool again = ValueOrExit(parts.start.ChooseAgain());
  if (again) return std::nullopt;
  const StepSpan steps = parts.start.Steps(parts.assignment.steps - 1);
  parts.files.TraceAfter(parts.assignment, steps.first);
  return steps;
}

// After setup, before the first step.
void TellReady(const TrainingParts& parts, const Rank& rank, const StepSpan& steps) {
  parts.start.Loaded();
  if (RunCheckpoints* checkpoints = parts.start.checkpoints(); checkpoints != nullptr) {
    parts.start_up.Enter("checkpoint memory");
    checkpoints->Prepare(rank.device);
  }
  if (parts.start.checkpoints() != nullptr) ListenForStop();
  std::string ready = parts.start_up.Line();
  LogInfo(ready);
  parts.trial.Ready(parts.start_up);
  if (rank.rank != 0) return;
  ExitUnlessOk(parts.files.events->Begin(steps.first));
  if (const int64_t asked = parts.assignment.steps; asked > 0 && steps.first >= asked)
    absl::StrAppend(&ready, "\nnothing to do: all ", asked, " steps are done");
  std::printf("%s\n", ready.c_str());
  std::fflush(stdout);
}

Handlers MakeHandlers(const TrainingParts& parts) {
  const Assignment& assignment = parts.assignment;
  StartPoint& start = parts.start;
  StartUp& start_up = parts.start_up;
  Handlers handlers = {.compute = parts.hooks.compute, .joined = parts.hooks.joined};
  start_up.Enter("data");
  const RankOptions& options = assignment.options;
  const RankSamples samples = OpenSamples(assignment.plan, assignment.role(), assignment.steps > 0,
                                          !options.record_routing.empty() || !options.replay_routing.empty());
  AgreeOnSamples(assignment, samples, *parts.store, start.checkpoints());
  ReadSamples(assignment.plan, samples, parts.device, assignment.rank() == 0, handlers);
  handlers.parameters = [&assignment, &start, &start_up](OpKind kind, ModuleState& module, StepState& step,
                                                         ManifestNotes& notes) {
    start_up.Enter("weights");
    if (kind == OpKind::kLoadParameters)
      start.initial()->Load(module, step, notes);
    else
      DrawParameters(assignment.plan, assignment.rank(), module);
    start_up.Enter("memory");
  };
  FollowRouting(options.record_routing, options.replay_routing, samples, handlers);
  if (start.checkpoints() != nullptr) {
    handlers.storage = [&start, &start_up, finish_routing = handlers.finish_routing](
                           OpKind kind, ModuleState* module, StepState& step, ManifestNotes& notes) {
      if (kind == OpKind::kLoadState) start_up.Enter("weights");
      // The life that goes on from this checkpoint does not record the steps before it again.
      if (kind == OpKind::kPublishCheckpoint && finish_routing) finish_routing();
      start.checkpoints()->Run(kind, module, step, notes);
      if (kind == OpKind::kLoadState) start_up.Enter("memory");
    };
    handlers.asked_to_stop = AskedToStop;
    const auto stop = std::make_shared<EvaluationStop>(assignment.rank(), options.life, *parts.store, AskedToStop);
    handlers.stops_evaluation = std::bind_front(&EvaluationStop::Before, stop);
    handlers.unheard_in_evaluation = [stop] { return stop->longest(); };
  }
  if (assignment.trial() && assignment.plan.checkpoint.every_steps > 0) {
    handlers.storage = [](OpKind kind, ModuleState*, StepState&, ManifestNotes&) {
      TORCH_CHECK(false, OpName(kind), " in a trial, which keeps nothing");
    };
  }
  handlers.resumed = [parts] { return Resumed(parts); };
  handlers.ready = [parts](const Rank& rank, const StepSpan& steps) { TellReady(parts, rank, steps); };
  return handlers;
}

}  // namespace

void MakeTraining(const TrainingParts& parts, std::optional<Training>& training) {
  const Assignment& assignment = parts.assignment;
  Handlers handlers = MakeHandlers(parts);
  parts.start_up.Enter("communicators");
  Communicators communicators = JoinGroups(assignment, parts.device, parts.store, parts.recorder);
  training.emplace(Training{.rank = {.plan = assignment.plan,
                                     .role = assignment.role(),
                                     .rank = assignment.rank(),
                                     .host = assignment.environment.host,
                                     .device = parts.device,
                                     .communicators = std::move(communicators),
                                     .step = StepState(assignment.plan, parts.device)},
                            .walk = {.steps = parts.start.Steps(assignment.steps - 1),
                                     .trial = assignment.trial(),
                                     .handlers = std::move(handlers),
                                     .files = {.recorder = parts.recorder,
                                               .log = parts.files.log.get(),
                                               .events = parts.files.events.get(),
                                               .probe = parts.files.probe.get(),
                                               .profile = parts.files.profile.get()},
                                     .deadlines = assignment.deadlines,
                                     .before_instruction = parts.hooks.before_instruction,
                                     .fail_point = parts.hooks.fail_point,
                                     .exit = [](int status, const std::string& what) { Exit(status, what); }}});
  parts.start_up.Enter("memory");
}

}  // namespace planwright::executor
