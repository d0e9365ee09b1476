#include "planner/model/expand_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"
#include "planner/model/expand_statement.h"
#include "planner/model/stage_split.h"
#include "planner/plan/layer_kinds.h"

namespace planwright {

const ModelStatement& StatementOfModel(const ModelRecipe& recipe) {
  const ModelStatement* statement = StatementOf(*recipe.kind);
  Require(statement != nullptr, "model kind " + *recipe.kind + " has a statement");
  return *statement;
}

std::string LayersOf(const ModelRecipe& recipe) {
  const auto* language = std::get_if<HybridLmModel>(&recipe.model);
  if (!language) return std::string(static_cast<size_t>(*std::get<RadioVitModel>(recipe.model).layers), 'V');
  std::string layers = *language->pattern;
  std::erase(layers, '|');
  return layers;
}

LocatedNumbers GivenNumbers(const ModelRecipe& recipe, const ProjectorTarget& target) {
  if (const auto* language = std::get_if<HybridLmModel>(&recipe.model)) return NumbersOf(*language);
  const auto& encoder = std::get<RadioVitModel>(recipe.model);
  LocatedNumbers numbers = NumbersOf(encoder);
  numbers.insert({{"crop", Attribute(int64_t{*encoder.positions == "crop"})},
                  {"output.hidden", Attribute(target.hidden)},
                  {"output.init_std", Attribute(target.init_std)},
                  {"output.layers", Attribute(target.layers)}});
  return numbers;
}

Attributes ConstantsOf(const ModelRecipe& recipe, const ProjectorTarget& target) {
  const LocatedNumbers given = GivenNumbers(recipe, target);
  const std::string layers = LayersOf(recipe);
  Attributes constants;
  for (const StatedConstant& constant : StatementOfModel(recipe).constants) {
    if (constant.of != 0 && layers.find(constant.of) == std::string::npos) continue;
    const auto number = given.find(constant.name);
    Require(number != given.end() && std::holds_alternative<double>(*number->second) == constant.real,
            absl::StrCat("a recipe gives the constant ", constant.name, " as it is stated"));
    constants.emplace(constant.name, *number->second);
  }
  return constants;
}

std::vector<std::string> RecomputedKinds(const ModuleRecipe& recipe) {
  const auto of =
      std::holds_alternative<RadioVitModel>(recipe.model.model) ? LayerKind::Of::kEncoder : LayerKind::Of::kLanguage;
  std::vector<std::string> kinds;
  for (const LayerKind& kind : LayerKinds()) {
    const bool wanted = std::any_of(
        recipe.recompute.begin(), recipe.recompute.end(),
        [&](const Located<std::string>& word) { return *word == kind.word || (kind.of == of && *word == "full"); });
    if (wanted) kinds.emplace_back(kind.word);
  }
  return kinds;
}

ProjectorTarget TargetOf(const ModelRecipe& language) {
  const auto& model = std::get<HybridLmModel>(language.model);
  return {model.hidden, model.init_std, static_cast<int64_t>(LayersOf(language).size())};
}

Module ExpandModule(const ModuleRecipe& recipe, const Grid& grid, const ProjectorTarget& target, int64_t sequence,
                    const DataPlan& data) {
  const ModelStatement& statement = StatementOfModel(recipe.model);
  Module module;
  module.name = recipe.name;
  module.model = recipe.model.name;
  module.kind = recipe.model.kind;
  module.has_images = statement.has_images;
  module.carries_loss = statement.carries_loss;
  module.grid = grid;
  module.trains_backbone = *recipe.train_backbone == "trained";
  module.trains_projection = statement.has_images ? *recipe.train_projection == "trained" : module.trains_backbone;
  module.recompute = RecomputedKinds(recipe);
  module.constants = ConstantsOf(recipe.model, target);
  Diagnostics none;  // topology has reported the problems of the split
  const auto stages = StagesOfLayers(recipe, none);
  Require(stages.has_value(), "the layers can be split into stages");
  const std::string layers = LayersOf(recipe.model);
  for (size_t i = 0; i < layers.size(); ++i) {
    module.layers.push_back(
        {.kind = layers[i], .frame = absl::StrCat(module.name, ".layers.", i), .stage = (*stages)[i]});
  }
  const ModelNumbers numbers({.micro_samples = 1, .sequence_length = sequence}, module, statement);
  ExpandStatement(statement, numbers, target.several_encoders, module);
  CountFlops(statement, numbers, data, sequence, module);
  // Not a constant, since no size of the model follows from it.
  if (module.expert_layers() > 0) module.imbalance = std::get<HybridLmModel>(recipe.model.model).moe.imbalance;
  return module;
}

}  // namespace planwright
