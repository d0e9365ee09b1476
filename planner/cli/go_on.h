// How a run that ended before it was done goes on: the command to paste into a shell.
#pragma once

#include <string>

#include "planner/cli/arguments.h"
#include "planner/plan/plan.h"
#include "planner/run_files/outcome.h"

namespace planwright {

// "to go on after step 4:\n  plan launch ...\n": the words and options of this command, with its run directory, without
// options that are of the first steps alone. What else can be done where nothing was kept. Empty: the run is done, a
// newer life has begun, or the same command would fail again (words, recipe or checkpoints must change first).
std::string GoOnText(const Plan& plan, const Outcome& outcome, const Arguments& arguments, const std::string& run_dir);

}  // namespace planwright
