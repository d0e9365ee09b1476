#include "planner/recipe/recipe_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "planner/diagnostics/near_name.h"
#include "planner/diagnostics/text.h"
#include "planner/diagnostics/utf8.h"
#include "planner/plan/layer_kinds.h"
#include "planner/recipe/fill_defaults.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/recipe_checks.h"
#include "planner/recipe/recipe_digest.h"
#include "planner/recipe/recipe_fields.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

HybridLmModel ReadHybridLm(const RecipeFields& fields, ModelRecipe& recipe) {
  HybridLmModel model = Defaults<HybridLmModel>();
  fields.Fill(recipe, model);
  for (const LayerKind& kind : LayerKinds()) {
    if (kind.of == LayerKind::Of::kLanguage && fields.Section(kind.word).given()) model.sections.emplace(kind.word);
  }
  return model;
}

RadioVitModel ReadRadioVit(const RecipeFields& fields, ModelRecipe& recipe) {
  RadioVitModel model = Defaults<RadioVitModel>();
  fields.Fill(recipe, model);
  return model;
}

// By name; a model of no known kind has been reported and is left out.
std::map<std::string, ModelRecipe> ReadModels(const RecipeFields& fields) {
  std::map<std::string, ModelRecipe> models;
  const YamlNode* named = fields.Value("models");
  if (named == nullptr) return models;
  for (const YamlEntry& entry : named->entries) {
    const RecipeFields inner = fields.Inner("models", entry.value, entry.key_where);
    ModelRecipe model;
    model.name = {entry.key, entry.key_where};
    const std::string kind = inner.Kind();
    if (kind == "radio_vit") {
      model.model = ReadRadioVit(inner, model);
    } else if (kind == "hybrid_lm") {
      model.model = ReadHybridLm(inner, model);
    } else {
      continue;
    }
    models.emplace(entry.key, std::move(model));
  }
  return models;
}

std::vector<std::string> NamesIn(const YamlNode* map) {
  std::vector<std::string> names;
  if (map == nullptr) return names;
  for (const YamlEntry& entry : map->entries) names.push_back(entry.key);
  return names;
}

ModuleRecipe ReadModule(const RecipeFields& fields, const std::string& name,
                        const std::map<std::string, ModelRecipe>& models, const std::vector<std::string>& model_names,
                        Diagnostics& problems) {
  ModuleRecipe module = Defaults<ModuleRecipe>();
  fields.Fill(module);
  module.name = {name, fields.where()};
  module.placement = fields.Section("placement").where();
  const Located<std::string>& reference = module.model_reference;
  if (const auto found = models.find(reference.value); found != models.end()) {
    module.model = found->second;
  } else if (reference.where.known() &&
             std::find(model_names.begin(), model_names.end(), reference.value) == model_names.end()) {
    problems.Error(DiagnosticKind::kUnknownReference, reference.where,
                   Cat("there is no model ", Quoted(reference.value)),
                   NearNameHelp(reference.value, model_names,
                                model_names.empty() ? "give it under `models`, or `extends` a file that does"
                                                    : Cat("`models` has ", absl::StrJoin(model_names, ", "))));
  }
  return module;
}

void ReadModules(const RecipeFields& fields, Recipe& recipe, Diagnostics& problems) {
  const std::map<std::string, ModelRecipe> models = ReadModels(fields);
  const std::vector<std::string> model_names = NamesIn(fields.Value("models"));
  const YamlNode* named = fields.Value("modules");
  if (named == nullptr) return;
  for (const YamlEntry& entry : named->entries) {
    const RecipeFields inner = fields.Inner("modules", entry.value, entry.key_where);
    recipe.modules.push_back(ReadModule(inner, entry.key, models, model_names, problems));
  }
}

void ReadBridges(const RecipeFields& fields, Recipe& recipe) {
  const YamlNode* list = fields.Value("bridges");
  if (list == nullptr) return;
  for (const YamlNode& item : list->items) {
    const RecipeFields inner = fields.Inner("bridges", item, item.where);
    BridgeRecipe& bridge = recipe.bridges.emplace_back(Defaults<BridgeRecipe>());
    inner.Fill(bridge);
    bridge.where = item.where;
  }
}

// Before anything warns.
void ReadLints(const RecipeFields& fields, Diagnostics& problems) {
  const YamlNode* lints = fields.Value("lints");
  if (lints == nullptr) return;
  for (const YamlEntry& entry : lints->entries) {
    const std::optional<DiagnosticKind> kind = FindKind(entry.key);
    if (!kind || !IsLint(*kind)) continue;
    if (entry.value.text == "error") problems.SetLevel(*kind, LintLevel::kError, entry.value.where);
    if (entry.value.text == "warn") problems.SetLevel(*kind, LintLevel::kWarn, entry.value.where);
    if (entry.value.text == "off") problems.SetLevel(*kind, LintLevel::kOff, entry.value.where);
  }
}

Recipe Fill(const YamlNode& tree, std::set<std::string> damaged, Diagnostics& problems) {
  const RecipeFields fields(tree);
  Recipe recipe = Defaults<Recipe>();
  recipe.damaged = std::move(damaged);
  // Sections whose values are looked at together while they are read.
  const auto read = [&](const char* section, auto reader) {
    const int64_t lost = ValuesLost(problems);
    reader();
    if (ValuesLost(problems) > lost) recipe.damaged.insert(section);
  };
  ReadLints(fields, problems);
  fields.Fill(recipe);
  recipe.digest = RecipeDigest(tree);
  read("modules", [&] { ReadModules(fields, recipe, problems); });
  ReadBridges(fields, recipe);
  recipe.budget.where = fields.Section("budget").where();
  const RecipeFields data = fields.Section("data");
  // Without its kind nobody knows which keys it should have.
  if (!data.Has("kind") || recipe.data.kind.where.known()) recipe.data.where = data.where();
  read("data", [&] { CheckData(recipe, data, problems); });
  return recipe;
}

}  // namespace

std::optional<Recipe> ReadRecipe(const std::string& path, const std::vector<std::string>& overrides,
                                 Diagnostics& problems) {
  std::optional<YamlNode> tree = ReadRecipeTree(path, overrides, problems);
  if (!tree) return std::nullopt;
  std::set<std::string> damaged = CheckKeys(*tree, problems);
  Recipe recipe = Fill(*tree, std::move(damaged), problems);
  const int64_t lost = ValuesLost(problems);
  CheckSettingsMeant(recipe, problems);
  if (ValuesLost(problems) > lost) recipe.damaged.insert("modules");
  return recipe;
}

void AddOverrides(const std::vector<std::string>& overrides, SourceTexts& texts) {
  texts.Add(kCommandLine, absl::StrJoin(overrides, "\n"));
}

}  // namespace planwright
