#include "planner/cli/before_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/check_checkpoint.h"
#include "planner/cli/checkpoint_folders.h"
#include "planner/cli/command.h"
#include "planner/cli/files_of_plan.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/terminal.h"
#include "planner/plan/earlier_parts.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/remote_names.h"
#include "planner/run/launch/check_machine.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/checkpoint/shard_reader.h"
#include "planner/state/checkpoint/trained_files.h"
#include "planner/views/diff/resume_diff.h"
#include "planner/views/diff/same_base.h"
#include "planner/views/show/show.h"
#include "planner/wire/records/outcome.h"

namespace planwright {
namespace {

// The plan from which the run in the directory goes on: that of its newest checkpoint, else that of its newest life.
// NotFound if there is neither; InvalidArgument if it cannot be read, or if a checkpoint of another run is in the way.
absl::StatusOr<OwnPlan> PlanSoFar(const std::string& run_dir) {
  const std::string path = run_dir + "/plan.json";
  std::error_code error;
  const bool there = std::filesystem::exists(std::filesystem::symlink_status(path, error));
  absl::StatusOr<Plan> plan = absl::NotFoundError(path + " is not there");
  if (there) {
    ABSL_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kPlanJson.bytes));
    plan = ReadPlan(text);
    if (!plan.ok() && !absl::IsFailedPrecondition(plan.status()))
      return absl::InvalidArgumentError(path + ": " + std::string(plan.status().message()));
  }
  const absl::StatusOr<CheckpointList> list = CheckpointsOf(run_dir);
  if (list.ok()) {  // else the life that begins says what is wrong with its files
    const FoundCheckpoint* newest = list->found.empty() ? nullptr : &list->found.front();
    ABSL_RETURN_IF_ERROR(CheckNoneOfAnotherRun(*list, newest));
    for (const FoundCheckpoint& one : list->found) {
      absl::StatusOr<OwnPlan> own = ReadAndCheckOwnPlan(one.folder, one.manifest);
      if (own.ok()) return own;  // a damaged one is passed over, as the life will
    }
  }
  if (!there) return plan.status();
  if (!plan.ok()) return OwnPlan{std::nullopt, std::string(plan.status().message())};
  return OwnPlan{*std::move(plan), ""};
}

// The newest checkpoint whose plan is whole; none also if the files are in disorder, of which the life that begins
// tells.
std::optional<FoundCheckpoint> NewestWhole(const std::string& run_dir) {
  const absl::StatusOr<CheckpointList> list = CheckpointsOf(run_dir);
  if (!list.ok()) return std::nullopt;
  for (const FoundCheckpoint& one : list->found) {
    if (ReadAndCheckOwnPlan(one.folder, one.manifest).ok()) return one;
  }
  return std::nullopt;
}

// What no --accept-changes helps against, as `plan diff` says it.
absl::Status CheckCanGoOn(const Plan& plan, const std::string& run_dir) {
  const std::optional<FoundCheckpoint> newest = NewestWhole(run_dir);
  if (!newest) return absl::OkStatus();
  const absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(newest->folder);
  if (!reader.ok()) return absl::OkStatus();  // the life that begins tells, and may take an older one
  const ResumeDiff diff = DiffResume(**reader, nullptr, plan);
  if (diff.refusals.empty()) return absl::OkStatus();
  std::string why = absl::StrJoin(diff.refusals, "; and ");
  if (!diff.misfits.empty()) absl::StrAppend(&why, "; the first difference: ", diff.misfits.front());
  return absl::InvalidArgumentError(absl::StrCat(
      "going on with ", run_dir, " is refused, with --accept-changes too: ", why, "; or choose another --run-dir"));
}

// Weights under adapters that are the same by the digest of the newest checkpoint. Files of another machine are not
// compared.
void AcceptBaseOf(const std::string& run_dir, const Plan& before, const Plan& plan, PlanDiff& diff) {
  if (!diff.may_change_loss()) return;
  const std::optional<FoundCheckpoint> newest = NewestWhole(run_dir);
  if (!newest || newest->manifest.base.empty()) return;
  const absl::StatusOr<std::map<std::string, std::string>> base = BaseToGoOn(plan);
  if (base.ok()) AcceptSameBase(before, plan, newest->manifest.base, *base, diff);
}

absl::Status WouldChangeCurve(const std::string& run_dir) {
  return absl::InvalidArgumentError("going on with " + run_dir +
                                    " would change the loss curve as said above; give --accept-changes if that is "
                                    "meant, or choose another --run-dir");
}

// The checkpoint from which the run in the directory would go on; none if it begins, or if its files are in disorder,
// of which its next life tells.
std::optional<FoundCheckpoint> NewestOf(const Plan& plan, const std::string& run_dir) {
  if (plan.checkpoint.every_steps == 0) return std::nullopt;
  absl::StatusOr<CheckpointList> list = CheckpointsOf(run_dir);
  if (!list.ok() || list->found.empty()) return std::nullopt;
  return std::move(list->found.front());
}

// The outcome of a run that has done all steps that this launch asks for, and whose newest checkpoint is whole. With a
// damaged one it is not done: its next life tells, and goes on from an older one.
std::optional<Outcome> OutcomeIfDone(const Plan& plan, const RunOptions& options, const FoundCheckpoint& newest) {
  if (newest.manifest.counters.consumed_samples < StepsOf(plan, options) * plan.budget.global_samples)
    return std::nullopt;
  const absl::StatusOr<std::string> text = ReadWholeFile(OutcomePath(options.run_dir), kOutcomeJson.bytes);
  absl::StatusOr<Outcome> outcome = text.ok() ? ReadOutcome(*text) : text.status();
  if (!outcome.ok() || outcome->exit_code != kExitSuccess) return std::nullopt;
  if (!CheckCheckpoint(newest.folder).problems.empty()) return std::nullopt;
  return *std::move(outcome);
}

int TellDone(const Plan& plan, const RunOptions& options, const FoundCheckpoint& newest, const Outcome& outcome,
             bool as_json) {
  const bool fewer = options.steps.has_value() && *options.steps < plan.budget.steps;
  std::cerr << Printable(absl::StrCat(
                   "the run in ", options.run_dir, " is done at step ", newest.manifest.counters.step, " of ",
                   plan.budget.steps, ": ",
                   fewer ? absl::StrCat("--steps ", *options.steps, " asks for no more; a larger number, or none, does")
                         : absl::StrCat("to train more, set budget.train_samples above ", plan.budget.train_samples,
                                        "; to train anew, choose another --run-dir")))
            << "\n";
  return as_json ? ReportRun(outcome, options.run_dir, true) : static_cast<int>(kExitSuccess);
}

// nullopt: they fit, as far as that can be known here.
std::optional<int> CheckFilesHere(const Plan& plan, bool weights, bool here) {
  for (const FileOfPlan& file : CompareFiles(plan, weights)) {
    if (file.here) {
      UsageError(file.problem);
      return absl::IsDataLoss(file.problem) ? kExitDamaged : kExitUsage;
    }
    const std::string what = file.key == FileOfPlan::Key::kWeights ? "weights" : "samples";
    if (file.key == FileOfPlan::Key::kWeights && MayBeHubName(file.named)) {
      return UsageError("there is no " + file.path +
                        ", where the recipe has its weights, and a run downloads nothing; "
                        "if it is a name of the Hugging Face hub, " +
                        HowToFetch("from", file.named) + "; if it is a folder of the nodes, write from: ./" +
                        file.named);
    }
    if (here)
      return UsageError("cannot read " + file.path + ": No such file or directory, where the recipe has its " + what);
    std::cerr << Printable("note: " + what + " " + file.path + " are not on this machine: the ranks compare them")
              << "\n";
  }
  return std::nullopt;
}

}  // namespace

absl::Status CheckChanges(const Plan& plan, const std::string& run_dir, bool accepted) {
  if (plan.checkpoint.every_steps == 0) return absl::OkStatus();
  absl::StatusOr<OwnPlan> before = PlanSoFar(run_dir);
  if (absl::IsNotFound(before.status())) return absl::OkStatus();
  if (!before.ok()) return before.status();
  if (!before->plan) {
    if (accepted) return absl::OkStatus();
    return absl::InvalidArgumentError("the plan of the run in " + run_dir +
                                      " is not read, so this plan cannot be compared with it: " + before->unread +
                                      "; give --accept-changes to go on with this one, or choose another --run-dir");
  }
  DropEarlierParts(*before->plan);
  PlanDiff diff = DiffPlans(*before->plan, plan);
  if (diff.same()) return absl::OkStatus();
  AcceptBaseOf(run_dir, *before->plan, plan, diff);
  std::cerr << DiffText(diff, "the run so far", "this plan", LineWidth(STDERR_FILENO, kShowWidth));
  if (!diff.may_change_loss() || accepted) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(CheckCanGoOn(plan, run_dir));
  return WouldChangeCurve(run_dir);
}

absl::Status CheckFiles(const Plan& plan, const std::map<std::string, std::string>& digests, const std::string& run_dir,
                        bool accepted) {
  if (plan.checkpoint.every_steps == 0) return absl::OkStatus();
  const std::optional<FoundCheckpoint> whole = NewestWhole(run_dir);
  if (!whole) return absl::OkStatus();
  const std::vector<std::string> others = OtherFilesLines(whole->manifest, digests);
  if (others.empty()) return absl::OkStatus();
  for (const std::string& line : others) std::cerr << Printable(line) << "\n";
  return accepted ? absl::OkStatus() : WouldChangeCurve(run_dir);
}

std::optional<int> CheckFilesOfJob(const Plan& plan, const RunOptions& options) {
  return CheckFilesHere(plan, /*weights=*/!NewestOf(plan, options.run_dir), /*here=*/false);
}

std::optional<int> CheckBeforeRanks(const Plan& plan, const RunOptions& options, const LaunchWay& way) {
  const std::optional<FoundCheckpoint> newest = NewestOf(plan, options.run_dir);
  if (newest) {
    const int64_t step = newest->manifest.counters.step;
    if (options.profile && options.profile->first <= step) {
      return UsageError(
          Printable(absl::StrCat("--trace asks for ", StepRangeText(*options.profile), ", and the run in ",
                                 options.run_dir, " has done steps 1 to ", step, " of ", plan.budget.steps,
                                 "; trace later ones, or choose another --run-dir")));
    }
    if (const std::optional<Outcome> done = OutcomeIfDone(plan, options, *newest))
      return TellDone(plan, options, *newest, *done, way.as_json);
  }
  // A run that goes on takes its weights from its own checkpoint.
  if (const std::optional<int> status = CheckFilesHere(plan, /*weights=*/!newest, way.here)) return status;
  if (const absl::Status status = CheckExecutor(plan, options, way.here); !status.ok()) return UsageError(status);
  const std::string few = way.here && !way.yes ? TooFewCores(plan, options) : "";
  if (few.empty()) return std::nullopt;
  if (!CanAsk()) return UsageError(few + "; give --yes if that is meant");
  if (Ask(few + ". Go on?")) return std::nullopt;
  std::cerr << "not started, as you say (exit status " << kExitUsage << "): nothing was written\n";
  return kExitUsage;
}

}  // namespace planwright
