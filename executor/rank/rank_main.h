// The life of one rank: read and check the plan, agree with all peers that they have the same one, create the
// communicators, walk the program, and leave with the exit status that says what happened
// (planner/run_files/exit_status.h).
#pragma once

#include <absl/status/status.h>

#include <functional>

#include "executor/fail_point.h"
#include "executor/program/rank.h"

namespace planwright::executor {

// What differs between the `executor` program and the executors of tests.
struct RankMainHooks {
  std::function<ComputeHandler(OpKind)> compute;  // ComputeHandlerOf of executor/ops/handler.h
  // Called with the plan as loaded, before any peer is contacted. An error ends the rank with that message.
  std::function<absl::Status(Plan&)> prepare;
  BeforeInstruction before_instruction = {};  // executor/streams/streams.h
  FailPointHook fail_point = {};
};

// executor --plan FILE --run-dir DIR [--probe DIR] [--steps N] [--trace STEP[-LAST]]
//     [--record-routing DIR | --replay-routing DIR] [--device cpu|cuda]
// Does not return: leaves by _exit.
int RankMain(int argc, char** argv, const RankMainHooks& hooks);

}  // namespace planwright::executor
