#include "executor/rank/start_point.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/log/log.h"
#include "executor/rank/exit.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/weights/base_digest.h"

namespace planwright::executor {

absl::StatusOr<std::unique_ptr<StartPoint>> StartPoint::Choose(const Assignment& assignment, c10d::Store& store,
                                                               StepLog* log, const CheckpointWriter::Hooks& hooks) {
  const Plan& plan = assignment.plan;
  const RankOptions& options = assignment.options;
  std::unique_ptr<StartPoint> start(new StartPoint(assignment, store, log));
  if (assignment.keeps()) {
    start->checkpoints_ =
        std::make_unique<RunCheckpoints>(plan, assignment.environment, options.run_dir, options.life, store, hooks);
    if (absl::Status chosen = start->ChooseCheckpoint(); !chosen.ok()) return chosen;
  }
  const bool adapted =
      std::any_of(plan.modules.begin(), plan.modules.end(), [](const Module& module) { return module.adapted(); });
  // Checkpoints of the run itself come first. They have adapters, and not what these stand on.
  if (plan.initialize && (!start->resumes_ || adapted)) {
    const InitialState::Purpose purpose = start->resumes_        ? InitialState::Purpose::kStandOn
                                          : assignment.steps > 0 ? InitialState::Purpose::kTrain
                                                                 : InitialState::Purpose::kEvaluate;
    absl::StatusOr<std::unique_ptr<InitialState>> chosen =
        InitialState::Choose(plan, purpose, assignment.environment, store);
    if (!chosen.ok()) return chosen.status();
    start->initial_ = *std::move(chosen);
    if (!start->resumes_) start->first_step_ = start->initial_->first_step();
  }
  if (adapted && start->checkpoints_ != nullptr) {
    absl::StatusOr<std::map<std::string, std::string>> base = BaseDigests(plan, WeightsFit());
    if (start->initial_ != nullptr) base = start->initial_->base();
    if (!base.ok()) return base.status();
    if (absl::Status same = start->checkpoints_->SetBase(*std::move(base)); !same.ok()) return same;
  }
  // A later life of the run traces what is left of the steps (StepFiles::TraceAfter).
  if (options.profile && !start->resumes_ && options.profile->first <= start->first_step_) {
    return absl::InvalidArgumentError(absl::StrCat("--trace begins at step ", options.profile->first,
                                                   ", but the run goes on after step ", start->first_step_));
  }
  return start;
}

absl::Status StartPoint::ChooseCheckpoint() {
  const absl::StatusOr<bool> chosen = checkpoints_->Choose();
  if (!chosen.ok()) return chosen.status();
  resumes_ = *chosen;
  if (log_ != nullptr) log_->SetRun(checkpoints_->run_id(), assignment_.options.life);
  if (resumes_) first_step_ = checkpoints_->first_step();
  // A checkpoint may still be found to be damaged, so the steps after it are dropped when it is loaded. Where there is
  // none, a life before this one may have done steps, but kept none of them.
  return resumes_ ? absl::OkStatus() : DropLaterSteps();
}

absl::StatusOr<bool> StartPoint::ChooseAgain() {
  const absl::StatusOr<bool> again = checkpoints_->TryAgain();
  if (!again.ok() || *again) return again;
  first_step_ = checkpoints_->first_step();
  if (absl::Status dropped = DropLaterSteps(); !dropped.ok()) return dropped;
  if (absl::Status agreed = AgreeOnEvaluated(); !agreed.ok()) return agreed;
  return false;
}

// Rank 0 has the file of the run; what it finds there holds for all.
absl::Status StartPoint::AgreeOnEvaluated() {
  if (assignment_.plan.evaluation.empty()) return absl::OkStatus();
  const std::string key = absl::StrCat("evaluated/", assignment_.options.life);
  const int64_t samples = first_step_ * assignment_.plan.budget.global_samples;
  absl::Status failed;
  try {
    if (log_ != nullptr) {
      const absl::StatusOr<std::optional<EvaluationRecord>> found = log_->LastEvaluation();
      failed = found.status();
      const EvaluationRecord* last = found.ok() && *found ? &**found : nullptr;
      evaluation_seconds_ = last ? last->seconds : 0;
      store_.set(key, last && last->consumed_samples == samples ? "yes" : "no");
    }
    evaluated_ = store_.get_to_str(key) == "yes";
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("agreeing on the last evaluation: ", error.what()));
  }
  return failed;
}

absl::Status StartPoint::DropLaterSteps() {
  if (log_ == nullptr) return absl::OkStatus();
  if (absl::Status ours = checkpoints_->CheckNotReplaced(); !ours.ok()) return ours;
  const RankOptions& options = assignment_.options;
  // A run that begins is evaluated as it begins, so nothing of before stays.
  const int64_t samples = resumes_ ? first_step_ * assignment_.plan.budget.global_samples : -1;
  const absl::StatusOr<int64_t> last =
      log_->KeepUpTo(samples, LifeFolder(options.run_dir, options.life) + "/" + kDroppedStepsFile);
  if (!last.ok()) return last.status();
  if (*last < samples) {
    const std::string line = absl::StrCat("metrics.jsonl has no records behind sample ", *last, ", and the checkpoint ",
                                          "is of sample ", samples, ": curves will lack the steps between");
    LogWarning(line);
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace planwright::executor
