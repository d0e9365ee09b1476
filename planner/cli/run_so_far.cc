#include "planner/cli/run_so_far.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/checkpoint_folders.h"
#include "planner/cli/terminal.h"
#include "planner/plan/earlier_parts.h"
#include "planner/plan/plan_json.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/views/diff/resume_diff.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// The plan from which the run in the directory goes on: that of its newest checkpoint, else that of its newest life.
// None: it is of another version of the plan's format. NotFound if there is neither; InvalidArgument if it cannot be
// read, or if a checkpoint of another run is in the way.
absl::StatusOr<std::optional<Plan>> PlanSoFar(const std::string& run_dir) {
  const std::string path = run_dir + "/plan.json";
  std::error_code error;
  const bool there = std::filesystem::exists(std::filesystem::symlink_status(path, error));
  absl::StatusOr<Plan> plan = absl::NotFoundError(path + " is not there");
  if (there) {
    const absl::StatusOr<std::string> text = ReadWholeFile(path, kPlanJson.bytes);
    if (!text.ok()) return text.status();
    plan = ReadPlan(*text);
    if (!plan.ok() && !absl::IsFailedPrecondition(plan.status()))
      return absl::InvalidArgumentError(path + ": " + std::string(plan.status().message()));
  }
  const absl::StatusOr<CheckpointList> list = CheckpointsOf(run_dir);
  if (list.ok()) {  // else the life that begins says what is wrong with its files
    const FoundCheckpoint* newest = list->found.empty() ? nullptr : &list->found.front();
    if (absl::Status status = CheckNoneOfAnotherRun(*list, newest); !status.ok()) return status;
    for (const FoundCheckpoint& one : list->found) {
      absl::StatusOr<std::optional<Plan>> own = ReadAndCheckOwnPlan(one.folder, one.manifest);
      if (own.ok()) return own;  // a damaged one is passed over, as the life will
    }
  }
  if (!there) return plan.status();
  return plan.ok() ? std::optional<Plan>(*std::move(plan)) : std::nullopt;
}

absl::Status WouldChangeCurve(const std::string& run_dir) {
  return absl::InvalidArgumentError("going on with " + run_dir +
                                    " would change the loss curve as said above; give --accept-changes if that is "
                                    "meant, or choose another --run-dir");
}

}  // namespace

absl::Status CheckChanges(const Plan& plan, const std::string& run_dir, bool accepted) {
  if (plan.checkpoint.every_steps == 0) return absl::OkStatus();
  absl::StatusOr<std::optional<Plan>> before = PlanSoFar(run_dir);
  if (absl::IsNotFound(before.status())) return absl::OkStatus();
  if (!before.ok()) return before.status();
  if (!*before) {
    if (accepted) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the newest checkpoint of " + run_dir +
        " has a plan of another version of Planwright, so nobody can say whether this plan would change the loss "
        "curve; give --accept-changes to go on with it, or choose another --run-dir");
  }
  DropEarlierParts(**before);
  const PlanDiff diff = DiffPlans(**before, plan);
  if (diff.same()) return absl::OkStatus();
  std::cerr << DiffText(diff, "the run so far", "this plan", LineWidth(STDERR_FILENO, kShowWidth));
  if (!diff.may_change_loss() || accepted) return absl::OkStatus();
  return WouldChangeCurve(run_dir);
}

absl::Status CheckFiles(const Plan& plan, const std::map<std::string, std::string>& digests, const std::string& run_dir,
                        bool accepted) {
  if (plan.checkpoint.every_steps == 0) return absl::OkStatus();
  const absl::StatusOr<CheckpointList> list = CheckpointsOf(run_dir);
  if (!list.ok()) return absl::OkStatus();  // the life that begins says what is wrong
  const auto whole = std::find_if(list->found.begin(), list->found.end(), [](const FoundCheckpoint& one) {
    return ReadAndCheckOwnPlan(one.folder, one.manifest).ok();
  });
  if (whole == list->found.end()) return absl::OkStatus();
  const std::vector<std::string> others = OtherFiles(whole->manifest.data, digests);
  if (others.empty()) return absl::OkStatus();
  for (const std::string& name : others) {
    std::cerr << Printable("the files of source " + name +
                           " have other documents than the run was trained on (digest " +
                           digests.at(name).substr(0, 12) + " instead of " +
                           whole->manifest.data.at(name).substr(0, 12) + ")")
              << "\n";
  }
  std::cerr << "samples are other ones from sample " << whole->manifest.counters.consumed_samples << " on\n";
  return accepted ? absl::OkStatus() : WouldChangeCurve(run_dir);
}

}  // namespace planwright
