#include "planner/cli/before_ranks.h"

#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/check_checkpoint.h"
#include "planner/cli/checkpoint_folders.h"
#include "planner/cli/command.h"
#include "planner/cli/files_of_plan.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/terminal.h"
#include "planner/run/launch/check_machine.h"
#include "planner/wire/records/outcome.h"

namespace planwright {
namespace {

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
      UsageError(std::string(file.problem.message()));
      return absl::IsDataLoss(file.problem) ? kExitDamaged : kExitUsage;
    }
    const std::string what = file.key == FileOfPlan::Key::kWeights ? "weights" : "samples";
    if (here)
      return UsageError("cannot read " + file.path + ": No such file or directory, where the recipe has its " + what);
    std::cerr << Printable("note: " + what + " " + file.path + " are not on this machine: the ranks compare them")
              << "\n";
  }
  return std::nullopt;
}

}  // namespace

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
  if (const absl::Status status = CheckExecutor(plan, options, way.here); !status.ok())
    return UsageError(std::string(status.message()));
  const std::string few = way.here && !way.yes ? TooFewCores(plan, options) : "";
  if (few.empty()) return std::nullopt;
  if (!CanAsk()) return UsageError(few + "; give --yes if that is meant");
  if (Ask(few + ". Go on?")) return std::nullopt;
  std::cerr << "not started, as you say (exit status " << kExitUsage << "): nothing was written\n";
  return kExitUsage;
}

}  // namespace planwright
