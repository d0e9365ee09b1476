// Exit statuses of `plan` and of the executor, and what is known of each (exit_status.def). A launch that signal N
// interrupted, without a checkpoint, exits with 128 + N.
#pragma once

#include <span>
#include <string>

namespace planwright {

enum ExitStatus : int {
#define EXIT_STATUS(name, number, ...) name = number,
#include "planner/base/files/exit_status.def"
#undef EXIT_STATUS
};

// A row of exit_status.def.
struct ExitStatusRow {
  int number = 0;
  bool restart = false, follows = false;
  const char *did = "", *meaning = "", *named = "", *mend = "";
};

// All rows, by ascending number.
std::span<const ExitStatusRow> ExitStatuses();

// Null: no program of ours ends so (another signal or library ended it).
const ExitStatusRow* FindExitStatus(int exit_status);

// Whether the same run, started again, may well succeed. `exit_status`: that of an Outcome, or of `plan launch`. False
// for an interrupt (128 + N), for kExitPreempted, which the one that asked for it decides, and for 126 and 127, with
// which a program ends that could not be started. True for other statuses that are not in the table: they come from a
// library or from the machine.
bool WorthRetrying(int exit_status);

// Whether a rank may have ended so because another one ended before it. Such an end is the cause of a failed run only
// if no rank ended in another way.
bool MayFollowFromAnother(int exit_status);

// A line for each status, for `plan help`.
std::string ExitStatusHelp();

// The page docs/failures.md.
std::string FailuresPage();

}  // namespace planwright
