// Proves a plan: the rules of "What a valid plan promises" (design). Knows Plan and nothing else. Run on every compile
// and again when a rank loads its plan. Rules read the lowered programs; but for V3 their cost grows with roles, blocks
// and transfers, not with ranks.
#pragma once

#include <string>
#include <vector>

#include "planner/estimate/memory.h"
#include "planner/plan/plan.h"
#include "planner/verify/microbatch_calls.h"
#include "planner/verify/plan_index.h"

namespace planwright {

// A broken rule.
struct Violation {
  std::string rule;  // "V3"
  std::string message;
  int origin = -1;        // index in Plan::origins; -1: the plan as a whole
  std::string help = {};  // what the author could change; empty: nothing, the plan is damaged
};

// All rules: V1 to V11, where V11 is that what follows from model, layout and free fields is what it must be. Programs
// are walked only when ranks and groups are sound, and run only when their values are. `memory`, if given, gets what
// V10 found of each role; nothing where a rule before it is broken, or no device is named.
std::vector<Violation> VerifyPlan(const Plan& plan, std::vector<RoleEstimate>* memory = nullptr);

// V1: every rank is in exactly one role; grids tile the world or are equal; both views factor the same span; a role is
// of one stage.
std::vector<Violation> VerifyPlacement(const Plan& plan);
// V2: groups have ordered, distinct members, unique names, and one creation order: world, modules, bridges.
std::vector<Violation> VerifyGroups(const Plan& plan);
// V3, progress: whatever the timing, with rendezvous sends and blocking collectives every rank reaches the end of its
// program, and all members of a collective bring equal kind, shape and dtype. A proof over roles (docs/progress.md),
// whose cost is that of reading the programs of the roles, the rank map and the bridge tables once. Reports the first
// thing that is wrong.
std::vector<Violation> VerifyProgress(const Plan& plan);
// V4 of calls: block names are unique, no block calls itself, and programs unroll to no more than limits.h allows. The
// rules below follow calls.
std::vector<Violation> VerifyCalls(const Plan& plan);
// V4: every value is defined before use and freed once after its last use; shapes, dtypes and layouts agree at every
// edge; run-time sizes are declared; what one stream makes another reads after an event; a tensor is read as what it
// is. And V6 of collectives inside blocks: what is reduced over an axis is a partial sum there.
std::vector<Violation> VerifyValues(const PlanIndex& index);
// V4 and V5 of a microbatch: saved values are taken once, layers run once and in order, gradients and statistics are
// added once. V6: what is accumulated once over an axis is replicated there, and only that.
std::vector<Violation> VerifyFrames(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);
// V5 inside a frame: the backward block is the transpose of the forward block, term by term.
std::vector<Violation> VerifyBackward(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);
// V5 of a step: every microbatch is read once by each stage that needs it, runs once, and keeps its own samples through
// stages and bridges.
std::vector<Violation> VerifySamples(const PlanIndex& index);
// V5 of meanings: tokens, labels, row counts, rows and gradients of the same type each go where they belong.
std::vector<Violation> VerifyMeanings(const PlanIndex& index);
// V5 of bridge tables: every sample of a lane is delivered once, and its gradient once back.
std::vector<Violation> VerifyBridges(const PlanIndex& index);
// V6 and V7 of the end of a step: gradients are summed over exactly their replicas, scaled, measured and stepped once,
// in that order.
std::vector<Violation> VerifyUpdates(const PlanIndex& index);
// V7 of storage: parameters fill their storages, storages their buckets, shards tile; weights that are written refresh
// the masters.
std::vector<Violation> VerifyStorage(const PlanIndex& index);
// V11 of modules: constants, parameters, storages, layers and counts are what the statement of the model
// (model_statement.h) makes of them.
std::vector<Violation> VerifyModel(const PlanIndex& index);
// V11 of blocks: a forward block computes what the statement of its layer kind says, with the same slots and settings;
// stages only hand on.
std::vector<Violation> VerifyGraphs(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);
// V11 of recompute: forwards are run again for the layer kinds that a module names, and for no others.
std::vector<Violation> VerifyRecompute(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);
// V11 of what follows from these: buckets, sums, groups and streams, bridges, image sizes of the data, run-time sizes,
// axes of the checkpoint.
std::vector<Violation> VerifyFollows(const PlanIndex& index);
// V11 of programs: how roles set up, that they run microbatches in the order of the schedule, and that an instruction
// has the fields of its kind and no others.
std::vector<Violation> VerifyPrograms(const PlanIndex& index);
// V11 of roles: those of one module and stage run the same program, but for what the leader exchanges over bridges.
std::vector<Violation> VerifySiblings(const PlanIndex& index);
// V9: every checkpoint key is unique over all modules, written by one rank, and tiles its tensor; every parameter has a
// source.
std::vector<Violation> VerifyCheckpoint(const Plan& plan);
// V10 of run-time sizes: there is room for all rows that can come, and memory is planned for as many expert rows as
// moe.imbalance declares.
std::vector<Violation> VerifyRows(const PlanIndex& index);
// V10: the fullest moment of every rank fits its device, expert rows at the declared imbalance (docs/memory.md).
std::vector<Violation> VerifyMemory(const Plan& plan, std::vector<RoleEstimate>* memory = nullptr);
// V8: samples, steps and microbatches add up; learning-rate segments touch and equal the formula, and so does the
// schedule.
std::vector<Violation> VerifyBudget(const Plan& plan);

}  // namespace planwright
