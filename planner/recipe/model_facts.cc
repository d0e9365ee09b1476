#include "planner/recipe/model_facts.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

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

std::vector<const ModelStatement*> LanguageKindsFirst() {
  std::vector<const ModelStatement*> statements;
  for (const bool language : {true, false}) {
    for (const ModelStatement& statement : BuiltInStatements()) {
      if (statement.carries_loss == language) statements.push_back(&statement);
    }
  }
  return statements;
}

std::string LanguageKinds() {
  std::vector<std::string> kinds;
  for (const ModelStatement& statement : BuiltInStatements()) {
    if (statement.carries_loss) kinds.push_back(statement.kind);
  }
  return absl::StrJoin(kinds, " or ");
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

bool GivesLayer(const ModelRecipe& model, char letter) {
  const ModelStatement& statement = StatementOfModel(model);
  const StatedKey* section = statement.SectionOf(letter);
  return section ? model.sections.contains(section->name) : statement.FindLayer(letter) != nullptr;
}

bool HasExperts(const ModelRecipe& model) {
  const ModelStatement& statement = StatementOfModel(model);
  return std::any_of(model.pattern->begin(), model.pattern->end(),
                     [&](char letter) { return statement.HasExperts(letter); });
}

bool GivesExperts(const ModelRecipe& model) {
  const ModelStatement& statement = StatementOfModel(model);
  return std::any_of(statement.layers.begin(), statement.layers.end(), [&](const auto& layer) {
    return statement.HasExperts(layer.first) && GivesLayer(model, layer.first);
  });
}

const StatedKey& ChoiceOf(const ModelRecipe& model, std::string_view name) {
  for (const StatedKey& key : StatementOfModel(model).keys) {
    if (key.form == StatedKey::Form::kChoice && key.name == name) return key;
  }
  Bug(Cat("the kind ", *model.kind, " has no choice ", name));
}

int64_t NumberOfWord(const StatedKey& choice, std::string_view word) {
  for (const auto& [its, number] : choice.words) {
    if (its == word) return number;
  }
  Bug(Cat("the choice ", choice.name, " has no word ", word));
}

ModelRecipe DefaultModel(const std::string& kind) {
  ModelRecipe model;
  model.kind = kind;
  for (const StatedKey& key : StatementOfModel(model).keys) {
    using Form = StatedKey::Form;
    const bool none = key.default_text.empty();
    if (key.form == Form::kChoice) {
      model.numbers[key.sets] = Attribute(none ? int64_t{0} : NumberOfWord(key, key.default_text));
    } else if ((key.form == Form::kConstant && key.required) || !none) {
      const bool real = key.type == StatedKey::Type::kReal;
      const double number = none ? 0 : std::stod(key.default_text);
      model.numbers[key.name] = real ? Attribute(number) : Attribute(static_cast<int64_t>(number));
    }
  }
  return model;
}

Located<int64_t> SizeOf(const LocatedNumbers& numbers, std::string_view name) {
  return NumberOf<int64_t>(numbers, name);
}
Located<double> RealOf(const LocatedNumbers& numbers, std::string_view name) { return NumberOf<double>(numbers, name); }

}  // namespace planwright
