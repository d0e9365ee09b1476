// What the ways of `plan evaluate` have in common: weights of a checkpoint, and a run of no steps on this machine.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "planner/cli/load_plan.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/run_options.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// A run that goes on removes its older checkpoints: says so if this one is gone.
bool TellRemoved(const std::string& checkpoint);

// As UsageError: a damaged checkpoint has a status of its own. One that was removed meanwhile is told as that.
int FailedWeights(const absl::Status& status, const std::string& checkpoint);

// What makes a recipe begin with these weights, and with nothing else of the checkpoint. What the recipe itself begins
// with does not matter, except for what adapters stand on: that is in no checkpoint.
std::vector<std::string> OverridesOfWeights(const FoundCheckpoint& checkpoint, const RecipeWords& recipe);

// Whether the plan's weights fit it, and its adapters stand on the weights with which they were trained. `checkpoint`:
// where they come from; null: not from one. Errors: InvalidArgument, with all that does not fit; those of reading.
absl::Status CheckWeights(const Plan& plan, const FoundCheckpoint* checkpoint);

// Whether an evaluation computes the model that a checkpoint was trained as. Weights fit by their shapes alone; numbers
// such as moe.scale have none. Compares the model of the plan with that of the plan in the checkpoint, except what only
// training asks for, and prints what differs. InvalidArgument if something does and the user has not accepted that;
// DataLoss if the checkpoint is damaged.
absl::Status CheckEvaluatedModel(const Plan& plan, const FoundCheckpoint& checkpoint, bool accepted);

// A run that is there would go on from its own checkpoints: AlreadyExists.
absl::Status CheckNew(const std::string& run_dir);

// Runs the evaluation of a plan and no steps, with a bar on a terminal. What ranks print goes to stderr: the result is
// the command's output. Errors of RunHere.
absl::StatusOr<Outcome> RunEvaluation(const Plan& plan, RunOptions options);

}  // namespace planwright
