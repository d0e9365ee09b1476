#include "planner/cli/evaluated_model.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/terminal.h"
#include "planner/plan/earlier_parts.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/views/diff/diff.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// Of the model, and more than a matter of training: the loss of given weights depends on it.
bool ChangesLossOfWeights(const PlanChange& change) {
  if (!change.may_change_loss) return false;
  if (change.area == "bridges") return !absl::StrContains(change.path, "max_mean_square");
  for (const std::string_view of_training :
       {"init_std", "moe.aux_loss", "moe.bias_rate", "output.layers", "constants.crop"}) {
    if (change.path.ends_with(of_training)) return false;
  }
  return absl::StrContains(change.path, ".constants") || absl::StrContains(change.path, ".layers");
}

}  // namespace

absl::Status CheckEvaluatedModel(const Plan& plan, const FoundCheckpoint& checkpoint, bool accepted) {
  absl::StatusOr<std::optional<Plan>> wrote = ReadAndCheckOwnPlan(checkpoint.folder, checkpoint.manifest);
  if (!wrote.ok()) return wrote.status();
  if (!*wrote) {
    std::cerr
        << "note: the checkpoint has a plan of another version of Planwright, so nobody can say whether its model "
           "is that of the recipe\n";
    return absl::OkStatus();
  }
  DropEarlierParts(**wrote);
  PlanDiff diff = DiffPlans(**wrote, plan);
  std::erase_if(diff.changes, [](const PlanChange& change) { return !ChangesLossOfWeights(change); });
  if (diff.same()) return absl::OkStatus();
  std::cerr << DiffText(diff, "the model of the checkpoint", "that of the recipe",
                        LineWidth(STDERR_FILENO, kShowWidth));
  if (accepted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the recipe has another model than " + checkpoint.folder +
      ", as said above; evaluate with the model of its run, or give --accept-changes if that is meant");
}

}  // namespace planwright
