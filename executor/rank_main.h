// The life of one rank: read the plan, agree with all peers, create groups, walk the program, leave with the exit
// status that says what happened (planner/run_files/exit_status.h).
#pragma once

#include <absl/status/status.h>

#include <functional>

#include "executor/rank.h"

namespace planwright::executor {

struct RankSetup {
  std::function<ComputeHandler(OpKind)> compute;  // op_table.h
  // Called with the plan as loaded, before any peer is met. An error ends the rank with that message.
  std::function<absl::Status(Plan&)> prepare;
  BeforeEach before_each = {};  // streams.h
};

// executor --plan FILE --run-dir DIR [--probe DIR] [--steps N] [--device cpu|cuda]. Leaves by _exit.
int RankMain(int argc, char** argv, const RankSetup& setup);

}  // namespace planwright::executor
