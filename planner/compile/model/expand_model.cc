#include "planner/compile/model/expand_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/compile/model/expand_statement.h"
#include "planner/compile/model/stage_split.h"
#include "planner/plan/statement/adapted_statement.h"

namespace planwright {
namespace {

double NumberOf(const Attribute& constant) {
  const auto* integer = std::get_if<int64_t>(&constant);
  return integer ? static_cast<double>(*integer) : std::get<double>(constant);
}

// The module with its constants and layers, and without parameters.
Module Begin(const ModuleRecipe& recipe, const Grid& grid, const std::vector<int>& stages,
             const ProjectorTarget& target) {
  Module module;
  module.name = recipe.name;
  module.model = recipe.model.name;
  module.kind = recipe.model.kind;
  const std::string layers = LayersOf(recipe.model);
  if (recipe.adapter) {
    std::vector<std::string> targets;
    for (const Located<std::string>& target : recipe.adapter->targets) targets.push_back(*target);
    module.adapter_targets = AdaptedNames(StatementOfModel(recipe.model), layers, targets);
  }
  const ModelStatement& statement = *StatementOf(module);
  module.has_images = statement.has_images;
  module.carries_loss = statement.carries_loss;
  module.grid = grid;
  module.trains_backbone = *recipe.train_backbone == "trained";
  module.trains_projection = statement.has_images ? *recipe.train_projection == "trained" : module.trains_backbone;
  module.constants = ConstantsOf(recipe.model, recipe.model.numbers, target);
  if (recipe.adapter) {
    module.constants[kAdapterRank] = *recipe.adapter->rank;
    module.constants[kAdapterAlpha] = *recipe.adapter->alpha;
  }
  Require(stages.size() == layers.size(), "every layer has a stage");
  for (size_t i = 0; i < layers.size(); ++i) {
    module.layers.push_back({.kind = layers[i], .frame = absl::StrCat(module.name, ".layers.", i), .stage = stages[i]});
  }
  return module;
}

}  // namespace

std::string LayersOf(const ModelRecipe& recipe) {
  std::string layers = recipe.pattern->substr(0, recipe.pattern->find('/'));
  std::erase(layers, '|');
  return layers;
}

Attributes ConstantsOf(const ModelRecipe& recipe, LocatedNumbers numbers, const ProjectorTarget& target) {
  const ModelStatement& statement = StatementOfModel(recipe);
  if (statement.has_images) {
    numbers.insert({{"output.hidden", Attribute(target.hidden)},
                    {"output.init_std", Attribute(target.init_std)},
                    {"output.layers", Attribute(target.layers)}});
  }
  const std::string layers = LayersOf(recipe);
  Attributes constants;
  for (const StatedConstant& constant : statement.constants) {
    if (constant.of != 0 && layers.find(constant.of) == std::string::npos) continue;
    const auto number = numbers.find(constant.name);
    if (number == numbers.end() && constant.otherwise) continue;
    Require(number != numbers.end() && std::holds_alternative<double>(*number->second) == constant.real,
            absl::StrCat("a recipe gives the constant ", constant.name, " as it is stated"));
    if (NumberOf(*number->second) == statement.NumberWithout(constant.name, constants)) continue;
    constants.emplace(constant.name, *number->second);
  }
  return constants;
}

std::vector<std::string> RecomputedKinds(const ModuleRecipe& recipe) {
  const std::string layers = LayersOf(recipe.model);
  std::vector<std::string> kinds;
  for (const StatedLayer& kind : StatementOfModel(recipe.model).layer_kinds) {
    const bool wanted =
        std::any_of(recipe.recompute.begin(), recipe.recompute.end(), [&](const Located<std::string>& word) {
          return *word == kind.word || (*word == "full" && layers.find(kind.letter) != std::string::npos);
        });
    if (wanted) kinds.push_back(kind.word);
  }
  const bool elementwise = std::any_of(recipe.recompute.begin(), recipe.recompute.end(),
                                       [](const Located<std::string>& word) { return *word == kElementwise; });
  if (elementwise) kinds.emplace_back(kElementwise);
  return kinds;
}

ProjectorTarget TargetOf(const ModelRecipe& language) {
  const LocatedNumbers& numbers = language.numbers;
  return {SizeOf(numbers, "hidden"), RealOf(numbers, "init_std"), static_cast<int64_t>(LayersOf(language).size())};
}

Module ExpandModule(const ModuleRecipe& recipe, const Grid& grid, const std::vector<int>& stages,
                    const ProjectorTarget& target, int64_t sequence, const DataPlan& data) {
  Module module = Begin(recipe, grid, stages, target);
  const ModelStatement& statement = *StatementOf(module);
  module.recompute = RecomputedKinds(recipe);
  const LocatedNumbers& given = recipe.model.numbers;
  const ModelNumbers numbers({.micro_samples = 1, .sequence_length = sequence}, module, statement);
  ExpandStatement(statement, numbers, target.several_encoders, module);
  CountFlops(statement, numbers, data, sequence, module);
  // Not a constant, since no size of the model follows from it.
  if (module.expert_layers() > 0 && given.contains("moe.imbalance")) module.imbalance = RealOf(given, "moe.imbalance");
  return module;
}

Module ParametersOf(const ModuleRecipe& recipe, const ProjectorTarget& target) {
  Module module = Begin(recipe, Grid(), std::vector<int>(LayersOf(recipe.model).size(), 0), target);
  const ModelStatement& statement = *StatementOf(module);
  const ModelNumbers numbers({.micro_samples = 1, .sequence_length = 1}, module, statement);
  ExpandStatement(statement, numbers, target.several_encoders, module);
  return module;
}

}  // namespace planwright
