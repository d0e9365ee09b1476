// Damaged plans. From a lowered plan a generator makes mutants, each wrong in one way that a rule names, and says which rules may refuse it.
//
// Only damage that changes what ranks do is made. Left out by construction, with the reason:
//   - sums and residuals in another order (add, add_residual_bias): the sum is the same;
//   - another group of the same members; the view of pp, which both views have; groups that no program uses, and dims of run-time size in another
//   name: nothing reads them;
//   - settings of the model alone (eps, scale, learning rate, initial values): another plan, not a wrong one. Where a backward instruction repeats
//     such a setting, it is damaged there;
//   - names of values, blocks, frames and events changed everywhere at once: a renaming;
//   - the lane order of a collective whose members are equal in every operand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct Mutant {
  std::string kind;                // "drop_instruction"
  std::string where;               // "language.moe.forward 12 all_to_all_v"
  std::vector<std::string> rules;  // that may refuse it
  std::function<void(Plan&)> inflict;
};

// Damage to instructions of blocks: V3 to V7.
std::vector<Mutant> BlockMutants(const Plan& plan);
// Damage to the programs of roles: V3 to V7.
std::vector<Mutant> ProgramMutants(const Plan& plan);
// Damage to ranks, groups, bridges, storage, budget and schedule: V1, V2, V5 to V8.
std::vector<Mutant> FactMutants(const Plan& plan);

std::vector<Mutant> AllMutants(const Plan& plan);

}  // namespace planwright::testing
