// How a run that ended before it was done goes on: the command to paste into a shell.
#pragma once

#include <string>

#include "planner/cli/arguments.h"
#include "planner/plan/plan.h"
#include "planner/run/launch/run_options.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// A word that a shell reads as this text.
std::string ShellWord(const std::string& text);

// Whether the run did all steps that the launch asked for, and its budget has more.
bool StoppedEarly(const Plan& plan, const RunOptions& options, const Outcome& outcome);

// "plan launch ...": the words and options of this command, with its run directory, without options that are of the
// first steps alone, and if it stopped early, without the number of steps.
std::string LaunchAgain(const Arguments& arguments, const std::string& run_dir, bool stopped_early);
// The same for the run of a job, whose words and options are in its folder RUN/job. `task`: of its array; empty: none.
std::string SubmitAgain(const std::string& program, const std::string& run_dir, const std::string& task,
                        bool stopped_early);

// "to go on after step 4:\n  COMMAND\n". What else can be done where nothing was kept. Empty: the run is done, a newer
// life has begun, or the same command would fail again (words, recipe or checkpoints must change first); after input
// that cannot be used, the command is for when that is mended, if there is a checkpoint.
std::string GoOnText(const Plan& plan, const RunOptions& options, const Outcome& outcome, const std::string& command);

}  // namespace planwright
