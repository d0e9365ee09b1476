#include "tests/numerics/mutated_plan.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/compile/groups/derive_groups.h"
#include "planner/compile/schedule/derive/derive_module.h"
#include "planner/compile/schedule/programs/lower_programs.h"
#include "planner/recipe/fill_defaults.h"
#include "tests/plan/statement/statement_mutants.h"
#include "tests/support/canonical_plan.h"

namespace planwright::testing {

Plan WithStatement(const Plan& plan, const ModelStatement& statement) {
  const Recipe recipe = Defaults<Recipe>();
  const BlockInputs inputs = {plan.modules, plan.bridges, plan.budget, plan.data, plan.dtype()};
  std::vector<ModuleBlocks> blocks;
  for (const Module& module : plan.modules) {
    const ModelStatement& its = module.kind == statement.kind ? statement : *StatementOf(module);
    blocks.push_back(DeriveModule(inputs, module, its, /*overlaps_dispatch=*/false));
  }
  Diagnostics problems;
  auto programs = LowerPrograms(
      recipe, {inputs, plan.schedule, plan.evaluation, plan.world_size, /*loads_weights=*/true, /*checkpoints=*/false},
      std::move(blocks), problems);
  Plan mutated = plan;
  mutated.groups = DeriveGroups(plan.modules, plan.bridges, programs->blocks, programs->roles);
  mutated.accumulators = std::move(programs->accumulators);
  mutated.symbols = std::move(programs->symbols);
  mutated.schedule = std::move(programs->schedule);
  mutated.blocks = std::move(programs->blocks);
  mutated.roles = std::move(programs->roles);
  return mutated;
}

absl::StatusOr<Plan> WithMutant(const Plan& plan, const std::string& name) {
  const size_t colon = name.find(':');
  const ModelStatement* statement = StatementOf(name.substr(0, colon));
  if (colon == std::string::npos || statement == nullptr) return absl::InvalidArgumentError("no mutant " + name);
  if (CanonicalDigest(WithStatement(plan, *statement)) != CanonicalDigest(plan))
    return absl::InvalidArgumentError("the plan is no plan of its statement with default settings");
  const std::vector<StatementMutant> mutants = MutantsOf(*statement);
  const size_t number = std::stoul(name.substr(colon + 1));
  if (number >= mutants.size()) return absl::InvalidArgumentError("no mutant " + name);
  return WithStatement(plan, mutants[number].statement);
}

std::string MutantName(const std::string& kind, size_t number) { return absl::StrCat(kind, ":", number); }

}  // namespace planwright::testing
