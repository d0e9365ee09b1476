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
#include "executor/rank/handlers.h"
#include "executor/rank/leave.h"
#include "executor/rank/peers.h"
#include "executor/rank/stop_request.h"
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
  const auto indexed = [](const EvaluationSet& set) { return set.data.kind == "sources"; };
  return plan.data.kind == "sources" || std::any_of(plan.evaluation.sets.begin(), plan.evaluation.sets.end(), indexed);
}

void AgreeOnSamples(const Assignment& assignment, const RankSamples& samples, c10d::Store& store,
                    RunCheckpoints* checkpoints) {
  if (!HasIndexes(assignment.plan)) return;
  const std::string digest = DigestOf(samples);
  if (!digest.empty()) LogInfo("data " + digest);
  LeaveUnlessOk(AgreeOnData(assignment.environment, digest, store));
  // Without steps, nobody opens the samples of the training, and no checkpoint is written.
  if (assignment.plan.data.kind != "sources" || assignment.steps == 0) return;
  if (samples.source != nullptr) LeaveUnlessOk(PostSources(samples.source->SourceDigests(), store));
  if (assignment.rank() == 0 && checkpoints != nullptr) checkpoints->SetSources(ValueOrLeave(PostedSources(store)));
}

Handlers MakeHandlers(const TrainingParts& parts, std::optional<Rank>& rank) {
  const Assignment& assignment = parts.assignment;
  Beginning& beginning = parts.beginning;
  StartUp& start_up = parts.start_up;
  Handlers handlers = {.compute = parts.hooks.compute};
  start_up.Enter("data");
  const RankOptions& options = assignment.options;
  const RankSamples samples = OpenSamples(assignment.plan, assignment.role(), assignment.steps > 0,
                                          !options.record_routing.empty() || !options.replay_routing.empty());
  AgreeOnSamples(assignment, samples, *parts.store, beginning.checkpoints());
  ReadSamples(assignment.plan, samples, parts.device, handlers);
  handlers.parameters = [&assignment, &beginning, &start_up, &rank](OpKind kind, ModuleState& module) {
    start_up.Enter("weights");
    if (kind == OpKind::kLoadParameters)
      beginning.initial()->Load(module, rank->step, rank->notes);
    else
      DrawParameters(assignment.plan, assignment.rank(), module);
    start_up.Enter("memory");
  };
  if (beginning.checkpoints() != nullptr) {
    handlers.storage = [&beginning, &start_up](OpKind kind, ModuleState* module, StepState& step,
                                               ManifestNotes& notes) {
      if (kind == OpKind::kLoadState) start_up.Enter("weights");
      beginning.checkpoints()->Run(kind, module, step, notes);
      if (kind == OpKind::kLoadState) start_up.Enter("memory");
    };
  }
  FollowRouting(options.record_routing, options.replay_routing, samples, handlers);
  return handlers;
}

bool ResumeAgain(Beginning& beginning, Rank& rank) {
  const bool again = ValueOrLeave(beginning.ChooseAgain());
  if (again) return true;
  rank.first_step = beginning.first_step();
  rank.evaluated = beginning.evaluated(), rank.evaluation_seconds = beginning.evaluation_seconds();
  return false;
}

// After setup, before the first step.
void TellReady(const TrainingParts& parts, const Rank& rank) {
  parts.beginning.Loaded();
  if (RunCheckpoints* checkpoints = parts.beginning.checkpoints(); checkpoints != nullptr) {
    parts.start_up.Enter("checkpoint memory");
    checkpoints->Prepare(rank.device);
  }
  if (parts.beginning.checkpoints() != nullptr) ListenForStop();
  std::string ready = parts.start_up.Line();
  LogInfo(ready);
  if (rank.rank != 0) return;
  LeaveUnlessOk(parts.files.events->Begin(rank.first_step));
  if (const int64_t steps = parts.assignment.steps; steps > 0 && rank.first_step >= steps)
    absl::StrAppend(&ready, "\nnothing to do: all ", steps, " steps are done");
  std::printf("%s\n", ready.c_str());
  std::fflush(stdout);
}

// Null: the run keeps no checkpoints, so that a request to stop ends it at once.
std::shared_ptr<EvaluationStop> MakeEvaluationStop(const TrainingParts& parts) {
  if (parts.beginning.checkpoints() == nullptr) return nullptr;
  return std::make_shared<EvaluationStop>(parts.assignment.rank(), parts.assignment.options.life, *parts.store,
                                          AskedToStop);
}

}  // namespace

void MakeRank(const TrainingParts& parts, std::optional<Rank>& rank) {
  const Assignment& assignment = parts.assignment;
  Handlers handlers = MakeHandlers(parts, rank);
  parts.start_up.Enter("communicators");
  Communicators communicators = JoinGroups(assignment, parts.device, parts.store, parts.recorder);
  using StopsEvaluation = decltype(Rank::stops_evaluation);
  const std::shared_ptr<EvaluationStop> stop = MakeEvaluationStop(parts);
  rank.emplace(Rank{.plan = assignment.plan,
                    .role = assignment.role(),
                    .rank = assignment.rank(),
                    .device = parts.device,
                    .handlers = std::move(handlers),
                    .communicators = std::move(communicators),
                    .step = StepState(assignment.plan, parts.device),
                    .recorder = parts.recorder,
                    .log = parts.files.log.get(),
                    .events = parts.files.events.get(),
                    .probe = parts.files.probe.get(),
                    .profile = parts.files.profile.get(),
                    .first_step = parts.beginning.first_step(),
                    .last_step = assignment.steps - 1,
                    .deadlines = assignment.deadlines,
                    .resumes = parts.beginning.resumes(),
                    .host = assignment.environment.host,
                    .resume_again = [&beginning = parts.beginning, &rank] { return ResumeAgain(beginning, *rank); },
                    .ready = [parts, &rank] { TellReady(parts, *rank); },
                    .asked_to_stop = parts.beginning.checkpoints() ? AskedToStop : std::function<bool()>(),
                    .stops_evaluation = stop ? std::bind_front(&EvaluationStop::Before, stop) : StopsEvaluation(),
                    .unheard_in_evaluation = [stop] { return stop ? stop->longest() : 0; },
                    .before_instruction = parts.hooks.before_instruction,
                    .fail_point = parts.hooks.fail_point,
                    .leave = [](int status, const std::string& what) { Leave(status, what); }});
  parts.start_up.Enter("memory");
}

}  // namespace planwright::executor
