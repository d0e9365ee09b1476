// Proves a plan: it keeps what a valid plan promises. Runs on every compile, and again in each rank that loads a plan.
// A plan that breaks a rule is not written and not run. What went wrong without such rules: docs/reference_bugs.md.
//
// The rules. Each has a folder here; a file in it starts with the promise and with what it does not cover.
//
//   V1   v1_placement               Each rank is in one role and in the grids of that role's modules.
//   V2   v2_groups                  Groups have ordered, distinct members. All ranks create them in one order.
//   V3   v3_progress                No rank waits for ever: each communication meets equal partners (docs/progress.md).
//   V4   v4_values                  Each value is defined, used and freed once, with the types that its users need.
//   V5   v5_samples_and_gradients   Each sample and each gradient goes where it belongs, once.
//   V6   v6_sums                    Each sum over ranks counts each term once.
//   V7   v7_updates                 State is touched in order. Each trained weight is reduced and stepped once a step.
//   V8   v8_budget                  Samples, steps, learning rate and pipeline order add up.
//   V9   v9_checkpoint              A checkpoint holds each element of the training's state once.
//   V10  v10_memory                 Each rank's fullest moment fits its device, and a node's ranks its memory.
//   V11  v11_what_follows           Each field that follows from others has the one value that follows.
//
// `shared` holds what several rules read: look-ups in a plan, typed operands, the calls of a microbatch. What V11 knows
// of models, as one rank would run them, are their statements (planner/plan/statement).
//
// Rules read a plan, the table of operations (ops.def) and the statements of models. They do not know how a plan was
// made: the rooms that expand models and lower programs are not linked here. Only V10 asks another room, `estimate`,
// for the memory that programs need. The cost grows with roles, blocks, transfers and parameters; some rules also keep
// one number for each rank.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/predict/estimate/memory.h"

namespace planwright {

// A broken rule.
struct Violation {
  std::string rule;  // "V3"
  std::string message;
  int origin = -1;        // index in Plan::origins; -1: the plan as a whole
  std::string help = {};  // what the author of the recipe could change; empty: nothing, the plan is damaged
};

// All rules, in the order in which each can rely on those before it; it stops where the next ones could not follow a
// damaged plan. Empty: the plan is valid. `memory`, if given, receives what V10 found of each role; it stays empty
// where a rule before V10 is broken or the cluster names no device.
std::vector<Violation> VerifyPlan(const Plan& plan, std::vector<RoleEstimate>* memory = nullptr);

}  // namespace planwright
