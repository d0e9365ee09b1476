#include "planner/recipe/model_facts.h"

#include <algorithm>
#include <variant>

#include "planner/base/text/bug.h"
#include "planner/plan/layer_kinds.h"

namespace planwright {
namespace {

// Each kind of model answers here.

Located<std::string> PatternIn(const HybridLmModel& model) { return model.pattern; }
Located<std::string> PatternIn(const RadioVitModel& model) {
  return {std::string(static_cast<size_t>(*model.layers), 'V'), model.layers.where};
}

// The section of a layer kind has the kind's word as its key.
bool GivesLayerIn(const HybridLmModel& model, char letter) { return model.has(LayerWord(letter)); }
bool GivesLayerIn(const RadioVitModel&, char letter) { return letter == 'V'; }

void AddChoices(const HybridLmModel& model, LocatedNumbers& numbers) {
  const std::optional<Located<bool>>& normalized = model.moe.normalized;
  if (normalized) numbers.insert({"moe.normalized", {int64_t{**normalized}, normalized->where}});
}
void AddChoices(const RadioVitModel& model, LocatedNumbers& numbers) {
  numbers.insert({{"crop", {int64_t{*model.positions == "crop"}, model.positions.where}},
                  {"final_norm", {int64_t{*model.final_norm == "layernorm"}, model.final_norm.where}},
                  {"erf_gelu", {int64_t{*model.activation == "gelu"}, model.activation.where}}});
}

template <typename Number>
Located<Number> NumberOf(const LocatedNumbers& numbers, std::string_view name) {
  const auto found = numbers.find(name);
  const Number* number = found == numbers.end() ? nullptr : std::get_if<Number>(&*found->second);
  if (number == nullptr) Bug("a model has no such number: " + std::string(name));
  return {*number, found->second.where};
}

}  // namespace

const ModelStatement& StatementOfModel(const ModelRecipe& model) {
  const ModelStatement* statement = StatementOf(*model.kind);
  if (statement == nullptr) Bug("model kind " + *model.kind + " has no statement");
  return *statement;
}

bool CarriesLoss(const ModelRecipe& model) {
  const ModelStatement* statement = StatementOf(*model.kind);
  return statement != nullptr && statement->carries_loss;
}

const ModuleRecipe* LanguageOf(const Recipe& recipe) {
  const auto language = std::find_if(recipe.modules.begin(), recipe.modules.end(),
                                     [](const ModuleRecipe& module) { return CarriesLoss(module.model); });
  return language == recipe.modules.end() ? nullptr : &*language;
}

Located<std::string> PatternOf(const ModelRecipe& model) {
  return std::visit([](const auto& its) { return PatternIn(its); }, model.model);
}

bool GivesLayer(const ModelRecipe& model, char letter) {
  return std::visit([&](const auto& its) { return GivesLayerIn(its, letter); }, model.model);
}

bool HasExperts(const ModelRecipe& model) {
  const ModelStatement& statement = StatementOfModel(model);
  const Located<std::string> pattern = PatternOf(model);
  return std::any_of(pattern->begin(), pattern->end(), [&](char letter) { return statement.HasExperts(letter); });
}

bool GivesExperts(const ModelRecipe& model) {
  const ModelStatement& statement = StatementOfModel(model);
  return std::any_of(statement.layers.begin(), statement.layers.end(), [&](const auto& layer) {
    return statement.HasExperts(layer.first) && GivesLayer(model, layer.first);
  });
}

LocatedNumbers NumbersOf(const ModelRecipe& model) {
  LocatedNumbers numbers;
  std::visit(
      [&](auto its) {
        AddNumbers(RefTo(its), numbers);
        AddChoices(its, numbers);
      },
      model.model);
  return numbers;
}

Located<int64_t> SizeOf(const LocatedNumbers& numbers, std::string_view name) {
  return NumberOf<int64_t>(numbers, name);
}
Located<double> RealOf(const LocatedNumbers& numbers, std::string_view name) { return NumberOf<double>(numbers, name); }

}  // namespace planwright
