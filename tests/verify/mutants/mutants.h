// Mutants: plans that are damaged on purpose. From a sound plan, generators make mutants that are each wrong in one
// way. A mutant says which rules may refuse it and which parts of the recipe the violation may point at. Two tests use
// them: in mutants_test.cc the rules must refuse them; in progress_test.cc rule V3 and a simulation of all ranks must
// agree on whether they make progress.
//
// A mutant must change what ranks do. So these changes are left out:
//   - another group with the same members; the axes of a group in another order (members ascend anyway); the view of a
//     group over pp (both views have pp); groups that no program uses; other names of run-time sizes;
//   - settings that only the model has (eps, scale, learning rate, initial values), because that is another plan and
//   not
//     a wrong one; but where a backward instruction repeats such a setting, the copy is damaged;
//   - names of values, blocks and frames that are changed everywhere at once;
//   - the order of lanes in a collective whose members have equal operands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct Mutant {
  std::string kind;   // "drop_instruction"
  std::string where;  // "language.moe.forward 12 all_to_all_v"
  // One of these must refuse it. Empty: it may be harmless; only the simulator can judge it.
  std::vector<std::string> rules;
  // Origin::what of recipe parts; the violation must point at one of them. Empty: at any.
  std::vector<std::string> origins;
  std::function<void(Plan&)> inflict;  // damages a copy of the plan that the mutant was made from
};

// Damage to instructions of blocks: V4 to V6.
std::vector<Mutant> BlockMutants(const Plan& plan);
// Damage to the programs of roles: V4 to V7.
std::vector<Mutant> ProgramMutants(const Plan& plan);
// Damage to collectives, transfers and streams, in blocks that all callers share or as one role alone sees them: V3,
// and the rules that notice what a lost communication carried. Works for any plan with sound groups and ranks, also for
// one that computes nothing.
std::vector<Mutant> CommunicationMutants(const Plan& plan);
// Damage outside the programs, to ranks, groups, bridges, storages, buckets, budget and schedule: V1, V2, V5 to V8.
std::vector<Mutant> StructureMutants(const Plan& plan);
// Damage to checkpoint keys, writers and sources, and to the maxima of run-time sizes: V9, V10.
std::vector<Mutant> CheckpointMutants(const Plan& plan);

// Damage to evaluation sets, to the lists of an evaluation, and to what keeps it from changing the training: V3 to V8,
// V11. None of a plan that evaluates nothing. (What is damaged in a step is damaged in a round too: ProgramMutants.)
std::vector<Mutant> EvaluationMutants(const Plan& plan);

// The mutants of all generators above.
std::vector<Mutant> AllMutants(const Plan& plan);

// Recipe parts that a violation may point at if a role is damaged: the role's modules, and the bridges that end at
// them.
std::vector<std::string> OriginsOf(const Plan& plan, const Role& role);
// The rules that may refuse a missing or changed collective on state (buckets or sums of a step).
std::vector<std::string> RulesOfStateCollective(const Instruction& collective);

}  // namespace planwright::testing
