// Damaged plans. From a lowered plan a generator makes mutants, each wrong in one way that a rule names, and says which
// rules may refuse it and which parts of the recipe they may point at. Two tests judge them: mutants_test asks that the
// rules refuse them, progress_test that rule V3 and a simulation of all ranks agree on what they do to progress.
//
// Only damage that changes what ranks do is made. Left out by construction, with the reason:
//   - sums and residuals in another order (add, add_residual_bias): the sum is the same;
//   - another group of the same members; axes of a group in another order, whose members ascend whatever it is; the
//     view of pp, which both views have; groups that no program uses; dims of run-time size in another name: nothing
//     reads them;
//   - settings of the model alone (eps, scale, learning rate, initial values): another plan, not a wrong one. Where a
//     backward instruction repeats such a setting, it is damaged there;
//   - names of values, blocks, frames and events changed everywhere at once: a renaming;
//   - the lane order of a collective whose members are equal in every operand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct Mutant {
  std::string kind;   // "drop_instruction"
  std::string where;  // "language.moe.forward 12 all_to_all_v"
  // one of which must refuse it; none: it may be harmless, and is for the simulator to judge
  std::vector<std::string> rules;
  std::vector<std::string> places;  // Origin::what of the recipe's parts, one of which must be pointed at; none: any
  std::function<void(Plan&)> inflict;
};

// Damage to instructions of blocks: V4 to V6.
std::vector<Mutant> BlockMutants(const Plan& plan);
// Damage to the programs of roles: V4 to V7.
std::vector<Mutant> ProgramMutants(const Plan& plan);
// Damage to collectives, transfers, streams and events, in blocks as all callers share them or as one role alone sees
// them: V3, and the rules of what is lost with a communication. Sound for any plan whose groups and ranks are, also one
// that computes nothing.
std::vector<Mutant> CommunicationMutants(const Plan& plan);
// Damage to ranks, groups, bridges, storage, budget and schedule: V1, V2, V5 to V8.
std::vector<Mutant> FactMutants(const Plan& plan);
// Damage to what a checkpoint holds and to what a role says that it needs: V9, V10.
std::vector<Mutant> ManifestMutants(const Plan& plan);

// All of them.
std::vector<Mutant> AllMutants(const Plan& plan);

// Where damage to a role shows: its modules, the bridges that end at them, and whoever else those join.
std::vector<std::string> PlacesOf(const Plan& plan, const Role& role);
// Who notices that a collective on buckets or sums is missing or another.
std::vector<std::string> RulesOfState(const Instruction& collective);

}  // namespace planwright::testing
