#include "tests/verify/mutants/mutants.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace planwright::testing {

std::vector<std::string> OriginsOf(const Plan& plan, const Role& role) {
  std::vector<std::string> origins;
  const auto runs = [&](const std::string& module) {
    return std::find(role.modules.begin(), role.modules.end(), module) != role.modules.end();
  };
  for (const std::string& module : role.modules) origins.push_back(absl::StrCat("module ", module));
  for (const Bridge& bridge : plan.bridges) {
    if (runs(bridge.from) || runs(bridge.to))
      origins.push_back(absl::StrCat("bridge ", bridge.from, " to ", bridge.to));
  }
  return origins;
}

std::vector<std::string> RulesOfStateCollective(const Instruction& collective) {
  const std::string& subject = collective.inputs.front();
  for (const char* sums : {"$integers", "$reals", "$source_", "$evaluated_"}) {
    if (absl::StartsWith(subject, sums)) return {"V5", "V7"};
  }
  // A sum over tp of partial gradients.
  if (collective.kind == OpKind::kAllReduce && absl::StrContains(subject, ".gradient_shards.")) return {"V6", "V7"};
  return {"V7"};
}

std::vector<Mutant> AllMutants(const Plan& plan) {
  std::vector<Mutant> mutants;
  for (auto* generator : {&BlockMutants, &ProgramMutants, &CommunicationMutants, &StructureMutants, &CheckpointMutants,
                          &EvaluationMutants}) {
    std::vector<Mutant> found = (*generator)(plan);
    std::move(found.begin(), found.end(), std::back_inserter(mutants));
  }
  return mutants;
}

}  // namespace planwright::testing
