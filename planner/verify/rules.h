// The functions behind VerifyPlan, one for each part of a rule, in the order of the rules (verify.h has the table).
// Each returns what it found wrong; an empty list means that this part of the rule holds. VerifyX is in a file
// verify_x.cc of the rule's folder. A function that takes a PlanIndex expects that V1, V2 and VerifyCalls hold.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "planner/plan/statement/model_statement.h"
#include "planner/verify/shared/microbatch_calls.h"
#include "planner/verify/shared/plan_index.h"
#include "planner/verify/verify.h"

namespace planwright {

// The statement that the blocks of a module are compared with.
using StatementOfModule = std::function<const ModelStatement*(const Module& module)>;
inline const ModelStatement* OwnStatement(const Module& module) { return StatementOf(module); }

// V1: every rank is in exactly one role; grids tile the world or are equal; both views factor the same span; a role is
// of one stage.
std::vector<Violation> VerifyPlacement(const Plan& plan);

// V2: groups have ordered, distinct members, unique names, and one creation order: world, modules, bridges.
std::vector<Violation> VerifyGroups(const Plan& plan);

// V3: with any timing, with sends that wait for their receiver and collectives that block, every rank reaches the end
// of its program. All members of a collective bring equal kind, shape and dtype. A proof over roles (docs/progress.md);
// reports the first thing that is wrong.
std::vector<Violation> VerifyProgress(const Plan& plan);

// V4 of calls: block names are unique, no block calls itself, and programs unroll to no more than limits.h allows.
std::vector<Violation> VerifyCalls(const Plan& plan);
// V4 of each list of instructions: every value is defined before use and freed once after its last use; shapes, dtypes
// and layouts agree at every edge; run-time sizes are declared; each parameter is read as what it is. Also V6 of the
// collectives inside blocks: what they reduce is a partial sum.
std::vector<Violation> VerifyValues(const PlanIndex& index);
// V4 of what a forward saves: its backward takes each saved value, once.
std::vector<Violation> VerifySavedValues(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);

// V5 of layers: in each microbatch each layer of a stage runs once and in order, and adds each gradient and each
// statistic once.
std::vector<Violation> VerifyLayers(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);
// V5 inside a layer: the backward block is the transpose of the forward block, term by term and in one order. A forward
// block declares the gradients that come.
std::vector<Violation> VerifyBackward(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);
// V5 of bridge tables: every sample of a lane is delivered once, and its gradient once back.
std::vector<Violation> VerifyBridges(const PlanIndex& index);
// V5 of a step: every microbatch is read once by each stage that needs it, runs once, and keeps its own samples through
// stages and bridges.
std::vector<Violation> VerifyMicrobatches(const PlanIndex& index);
// V5 of meanings: tokens, labels, row counts, rows and gradients can have the same type; each goes where it belongs.
std::vector<Violation> VerifyMeanings(const PlanIndex& index);

// V6 of statistics: what is added to a sum of the step is added once over each axis along which it is the same.
std::vector<Violation> VerifyCountedOnce(const PlanIndex& index);
// V6 of gradients over tp and cp: each bucket treats a gradient as what the backward instructions make of it.
std::vector<Violation> VerifyGradientSums(const PlanIndex& index);

// V7 of storage: parameters fill their storages, storages fill their buckets, shards tile.
std::vector<Violation> VerifyStorage(const PlanIndex& index);
// V7 of state: what outlives a list is touched by the right instructions of each list, as often and in the order that
// the table of state says.
std::vector<Violation> VerifyStates(const PlanIndex& index);
// V7 of collectives on state: gradients are reduced over exactly their replicas, weights gathered from them. Also V5
// and V6 of the step's own sums: loss, counts and norms.
std::vector<Violation> VerifyUpdates(const PlanIndex& index);

// V8: samples, steps and microbatches add up; learning-rate segments touch and equal the formula; the schedule is 1F1B.
std::vector<Violation> VerifyBudget(const Plan& plan);

// V9: every parameter is written once, by one rank for each part, and its parts tile it.
// Includes VerifyCheckpointKeys.
std::vector<Violation> VerifyCheckpoint(const Plan& plan);
// V9 of names: no two tensors of a checkpoint share a key.
std::vector<Violation> VerifyCheckpointKeys(const Plan& plan);

// V10 of run-time sizes: there is room for all rows that can come, and memory is planned for as many expert rows as
// moe.imbalance declares.
std::vector<Violation> VerifyRunTimeSizes(const PlanIndex& index);
// V10: the fullest moment of every rank fits its device, with expert rows at the declared imbalance (docs/memory.md).
std::vector<Violation> VerifyMemory(const Plan& plan, std::vector<RoleEstimate>* memory = nullptr);
// V10 of host memory: what the ranks of a node need fits what the cluster gives, and copies of checkpoints have room.
std::vector<Violation> VerifyHostMemory(const Plan& plan);

// V11 of modules: constants, parameters, storages, layers and counts are what the statement of the model makes of them.
std::vector<Violation> VerifyModules(const PlanIndex& index);
// V11 of blocks: a forward block computes what the statement of its layer kind says, with the same slots and settings;
// stages only hand values on.
std::vector<Violation> VerifyForwardGraphs(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches,
                                           const StatementOfModule& statement_of = OwnStatement);
// V11 of recompute: forwards are run again for the layer kinds that a module names, and for no others.
std::vector<Violation> VerifyRecompute(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);
// V11 of single fields: buckets, sums of the step, groups and streams, bridges, image sizes of the data, run-time
// sizes, axes of the checkpoint.
std::vector<Violation> VerifyDerivedFields(const PlanIndex& index);
// V11 of evaluation sets: their data is that of the training, but for where samples come from.
std::vector<Violation> VerifyEvaluationData(const Plan& plan);
// V11 of programs: the one order of what has several orders, that roles run microbatches in the order of the schedule,
// and that an instruction has the fields of its kind and no others.
std::vector<Violation> VerifyPrograms(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches);
// V11 of roles: those of one module and stage run the same program, except for what the leader exchanges over bridges.
std::vector<Violation> VerifySiblings(const PlanIndex& index);
// V11 of frees: a value ends with its last use.
std::vector<Violation> VerifyFrees(const PlanIndex& index);

}  // namespace planwright
