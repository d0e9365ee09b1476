#include "planner/compile/model/expand_modules.h"

#include <utility>

#include "planner/compile/model/expand_model.h"
#include "planner/compile/model/lint_stages.h"
#include "planner/recipe/origins.h"

namespace planwright {

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
    module.origin = OriginOfModule(i);
    modules.push_back(std::move(module));
  }
  return modules;
}

}  // namespace planwright
