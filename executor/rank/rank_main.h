// The life of one rank: read and check the plan, agree with all peers that they have the same one, create the
// communicators, walk the program, and exit with the status that says what happened
// (planner/base/files/exit_status.h).
#pragma once

#include "executor/rank/hooks.h"

namespace planwright::executor {

// The options are those of assignment.h. Does not return: it ends by _exit.
int RankMain(int argc, char** argv, const RankMainHooks& hooks);

}  // namespace planwright::executor
