// What a recipe says of the processes of its ranks: `launch.env`, and `launch.setup`, which bash runs before each rank
// (docs/jobs.md#environment).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/rank_program.h"

namespace planwright {

// What a job has of the shell that submits it, beside what its recipe says: PATH, HOME, USER, LANG, and names that
// begin with PLANWRIGHT_, without the name and the secret of a run.
Variables VariablesOfShell();

// Names of variables of this process that libraries read (IsLibraryVariable), sorted, without those that a job takes
// and those that the recipe names.
std::vector<std::string> LibraryVariablesLeftBehind(const LaunchPlan& launch);

// The variables of launch.env with their values; those that are passed on have that of `passed_on`, else of this
// process. InvalidArgument, with all names, if this process lacks some of them.
absl::StatusOr<Variables> VariablesOfRecipe(const LaunchPlan& launch, const Variables& passed_on = {});

// The command of a rank: itself, or, where there is launch.setup, a bash that runs these lines and then becomes it.
// Lines see /etc/profile's functions, as those of a login shell do. The first that fails ends the rank, with its status
// and "launch.setup: line N ended with status ..."; what bash itself prints of line N begins with "launch.setup: line
// N:".
std::vector<std::string> WithSetup(const LaunchPlan& launch, std::vector<std::string> command);

}  // namespace planwright
