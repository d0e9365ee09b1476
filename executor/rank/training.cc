#include "executor/rank/training.h"

#include <absl/strings/str_cat.h>

#include <cstdio>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "executor/communication/agreement.h"
#include "executor/log/log.h"
#include "executor/rank/handlers.h"
#include "executor/rank/leave.h"
#include "executor/rank/peers.h"
#include "executor/rank/stop_request.h"

namespace planwright::executor {
namespace {

// Other kinds of data number their samples by the plan alone.
void AgreeOnSamples(const Assignment& assignment, const RankSamples& samples, c10d::Store& store,
                    RunCheckpoints* checkpoints) {
  if (assignment.plan.data.kind != "sources") return;
  const std::string digest = samples.source == nullptr ? "" : samples.source->digest();
  if (!digest.empty()) LogInfo("data " + digest);
  if (!digest.empty()) LeaveUnlessOk(PostSources(samples.source->SourceDigests(), store));
  LeaveUnlessOk(AgreeOnData(assignment.environment, digest, store));
  if (assignment.rank() == 0 && checkpoints != nullptr) checkpoints->SetSources(ValueOrLeave(PostedSources(store)));
}

Handlers MakeHandlers(const TrainingParts& parts, std::optional<Rank>& rank) {
  const Assignment& assignment = parts.assignment;
  Beginning& beginning = parts.beginning;
  StartUp& start_up = parts.start_up;
  Handlers handlers = {.compute = parts.hooks.compute};
  start_up.Enter("data");
  const RankOptions& options = assignment.options;
  const RankSamples samples = OpenSamples(assignment.plan, assignment.role(),
                                          !options.record_routing.empty() || !options.replay_routing.empty());
  AgreeOnSamples(assignment, samples, *parts.store, beginning.checkpoints());
  ReadSamples(assignment.plan, samples, parts.device, handlers);
  handlers.parameters = [&assignment, &beginning, &start_up, &rank](OpKind kind, ModuleState& module) {
    start_up.Enter("weights");
    if (kind == OpKind::kLoadParameters)
      beginning.initial()->Load(module, rank->step);
    else
      DrawParameters(assignment.plan, assignment.rank(), module);
    start_up.Enter("memory");
  };
  if (beginning.checkpoints() != nullptr) {
    handlers.storage = [&beginning, &start_up](OpKind kind, ModuleState* module, StepState& step) {
      if (kind == OpKind::kLoadState) start_up.Enter("weights");
      beginning.checkpoints()->Run(kind, module, step);
      if (kind == OpKind::kLoadState) start_up.Enter("memory");
    };
  }
  FollowRouting(options.record_routing, options.replay_routing, samples, handlers);
  return handlers;
}

bool ResumeAgain(Beginning& beginning, Rank& rank) {
  const bool again = ValueOrLeave(beginning.ChooseAgain());
  if (!again) rank.first_step = beginning.first_step();
  return again;
}

// After setup, before the first step.
void TellReady(const TrainingParts& parts, const Rank& rank) {
  parts.beginning.Loaded();
  if (RunCheckpoints* checkpoints = parts.beginning.checkpoints(); checkpoints != nullptr) {
    parts.start_up.Enter("checkpoint memory");
    checkpoints->Prepare(rank.device);
  }
  std::string ready = parts.start_up.Line();
  LogInfo(ready);
  if (rank.rank != 0) return;
  LeaveUnlessOk(parts.files.events->Begin(rank.first_step));
  if (const int64_t steps = parts.assignment.steps; rank.first_step >= steps)
    absl::StrAppend(&ready, "\nnothing to do: all ", steps, " steps are done");
  std::printf("%s\n", ready.c_str());
  std::fflush(stdout);
}

}  // namespace

void MakeRank(const TrainingParts& parts, std::optional<Rank>& rank) {
  const Assignment& assignment = parts.assignment;
  Handlers handlers = MakeHandlers(parts, rank);
  parts.start_up.Enter("communicators");
  Communicators communicators = JoinGroups(assignment, parts.device, parts.store, parts.recorder);
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
                    .before_instruction = parts.hooks.before_instruction,
                    .fail_point = parts.hooks.fail_point,
                    .leave = [](int status, const std::string& what) { Leave(status, what); }});
  parts.start_up.Enter("memory");
}

}  // namespace planwright::executor
