#include "planner/compile/model/expand_modules.h"

#include <string>
#include <utility>

#include "planner/base/text/text.h"
#include "planner/compile/model/expand_model.h"
#include "planner/compile/model/lint_stages.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/recipe/origins.h"

namespace planwright {
namespace {

// Two thin products have no more rank than the weight beside them.
void LintAdapterRank(const ModuleRecipe& recipe, const Module& module, Diagnostics& diagnostics) {
  if (!recipe.adapter) return;
  const Located<int64_t>& rank = recipe.adapter->rank;
  int64_t least = *rank;
  std::string name;
  for (const Parameter& parameter : module.parameters) {
    if (!IsOfAdapter(module, parameter)) continue;
    const bool inputs = parameter.file_name.ends_with(".lora_A.weight");
    const int64_t side = parameter.shape[inputs ? 1 : 0];
    if (side >= least) continue;
    least = side, name = parameter.file_name;
  }
  if (name.empty()) return;
  diagnostics.Warning(DiagnosticKind::kImplausibleValue, rank.where,
                      Cat("rank ", *rank, " is above the smaller side of a target, ", least, " of ", name,
                          ": the adapter has more numbers than a change of that weight needs"),
                      Cat("use a rank below ", least, ", or train the backbone"));
}

}  // namespace

std::vector<Module> ExpandModules(const Recipe& recipe, const std::vector<Grid>& grids,
                                  const std::vector<std::vector<int>>& stages, const DataPlan& data,
                                  Diagnostics& diagnostics) {
  ProjectorTarget target;
  if (const ModuleRecipe* language = LanguageOf(recipe)) target = TargetOf(language->model);
  target.several_encoders = recipe.modules.size() > 2;
  std::vector<Module> modules;
  for (size_t i = 0; i < grids.size(); ++i) {
    Module module = ExpandModule(recipe.modules[i], grids[i], stages[i], target, recipe.batch.sequence_length, data);
    LintStages(recipe.modules[i], module, diagnostics);
    LintAdapterRank(recipe.modules[i], module, diagnostics);
    module.origin = OriginOfModule(i);
    modules.push_back(std::move(module));
  }
  return modules;
}

}  // namespace planwright
