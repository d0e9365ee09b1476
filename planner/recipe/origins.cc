#include "planner/recipe/origins.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace planwright {

std::vector<Origin> OriginsOf(const Recipe& recipe) {
  std::vector<Origin> origins;
  const auto add = [&](const Location& where, std::string what) {
    origins.push_back({where.file ? *where.file : "", where.line, where.column, std::move(what)});
  };
  for (const ModuleRecipe& module : recipe.modules) add(module.name.where, absl::StrCat("module ", *module.name));
  for (const BridgeRecipe& bridge : recipe.bridges)
    add(bridge.where, absl::StrCat("bridge ", *bridge.from, " to ", *bridge.to));
  add(recipe.budget.where, "budget");
  return origins;
}

}  // namespace planwright
