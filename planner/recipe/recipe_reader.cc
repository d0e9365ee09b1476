#include "planner/recipe/recipe_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/fill_defaults.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/lint_values.h"
#include "planner/recipe/mend_tree.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/recipe_checks.h"
#include "planner/recipe/recipe_digest.h"
#include "planner/recipe/recipe_fields.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

// `fields`: of a model of this kind.
ModelRecipe ReadModel(const RecipeFields& fields, const std::string& kind) {
  ModelRecipe model = DefaultModel(kind);
  fields.Fill(model);
  // A section that is no map is given, too: its sizes are broken.
  for (const StatedKey& key : StatementOfModel(model).keys) {
    if (key.form == StatedKey::Form::kSection && fields.Has(key.name)) model.sections.insert(key.name);
  }
  return model;
}

// A model that could not be read, which is reported: nothing is known of it.
ModelRecipe UnknownModel() {
  ModelRecipe model;
  model.kind.where.broken = true;
  return model;
}

// The models by name. A model of an unknown kind is already reported (key_checks.cc) and left out.
std::map<std::string, ModelRecipe> ReadModels(const RecipeFields& fields) {
  std::map<std::string, ModelRecipe> models;
  const YamlNode* named = fields.Value("models");
  if (named == nullptr) return models;
  for (const YamlEntry& entry : named->entries) {
    const RecipeFields inner = fields.Inner("models", entry.value, entry.key_where);
    const std::string kind = inner.Kind();
    if (StatementOf(kind) == nullptr) continue;
    ModelRecipe model = ReadModel(inner, kind);
    model.name = {entry.key, entry.key_where};
    models.emplace(entry.key, std::move(model));
  }
  return models;
}

// Also the names of models that were left out: they are defined, so that a module that names one is not reported again.
std::vector<std::string> NamesIn(const YamlNode* map) {
  std::vector<std::string> names;
  if (map == nullptr) return names;
  for (const YamlEntry& entry : map->entries) names.push_back(entry.key);
  return names;
}

// As many names as a message has room for.
std::string FirstOf(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostModules);
  const std::string text = absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", ");
  return shown < names.size() ? Cat(text, ", ...") : text;
}

// `near_names`: those of `model_names` among which a similar one is looked for.
ModuleRecipe ReadModule(const RecipeFields& fields, const std::string& name,
                        const std::map<std::string, ModelRecipe>& models, const std::vector<std::string>& model_names,
                        const std::vector<std::string>& near_names, bool names_known, Diagnostics& problems) {
  ModuleRecipe module = Defaults<ModuleRecipe>();
  module.model = UnknownModel();
  fields.Fill(module);
  // The locations that diagnostics about the whole module and its ranks point at.
  module.name = {name, fields.where()};
  module.placement = fields.Section("placement").where();
  const Located<std::string>& reference = module.model_reference;
  // A name that is missing or has the wrong type is already reported. A model that is named but was not read, too.
  std::string meant = reference.value;
  if (AllKnown(reference) && names_known &&
      std::find(model_names.begin(), model_names.end(), reference.value) == model_names.end()) {
    meant = NearName(reference.value, near_names).value_or(model_names.size() == 1 ? model_names[0] : "");
    Diagnostic& problem = problems.Error(
        DiagnosticKind::kUnknownReference, reference.where, Cat("there is no model ", Quoted(reference.value)),
        !meant.empty()        ? Cat("did you mean `", meant, "`?")
        : model_names.empty() ? "define it under `models`, or extend a file that defines it"
                              : Cat("the models are ", FirstOf(model_names)));
    if (!meant.empty()) problem.edits = {{Cat("modules.", name, ".model"), meant}}, problem.restates = true;
  }
  if (const auto found = models.find(meant); found != models.end()) module.model = found->second;
  return module;
}

void ReadModules(const RecipeFields& fields, Recipe& recipe, Diagnostics& problems) {
  const std::map<std::string, ModelRecipe> models = ReadModels(fields);
  const std::vector<std::string> model_names = NamesIn(fields.Value("models"));
  const bool names_known = !recipe.damaged.contains("models");
  const YamlNode* named = fields.Value("modules");
  if (named == nullptr) return;
  // Each name is compared with each: of more modules than there may be, which is told, none.
  const std::vector<std::string> near_names =
      named->entries.size() > kMostModules ? std::vector<std::string>() : model_names;
  for (const YamlEntry& entry : named->entries) {
    const RecipeFields inner = fields.Inner("modules", entry.value, entry.key_where);
    recipe.modules.push_back(ReadModule(inner, entry.key, models, model_names, near_names, names_known, problems));
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

void ReadWeightSources(const RecipeFields& fields, InitializeRecipe& initialize) {
  initialize.where = fields.where();
  const YamlNode* list = fields.Value("sources");
  if (list == nullptr) return;
  for (const YamlNode& item : list->items) {
    WeightSourceRecipe& source = initialize.sources.emplace_back(Defaults<WeightSourceRecipe>());
    fields.Inner("sources", item, item.where).Fill(source);
    source.where = item.where;
  }
}

void ReadRateParts(const RecipeFields& fields, Recipe& recipe) {
  const YamlNode* list = fields.Value("parts");
  if (list == nullptr) return;
  for (const YamlNode& item : list->items) {
    RatePartRecipe& part = recipe.rate_parts.emplace_back(Defaults<RatePartRecipe>());
    fields.Inner("parts", item, item.where).Fill(part);
    if (item.is_map()) part.where = item.where;  // told; without a location it is not checked what the part needs
  }
}

// `fields`: a map with a list `sources`.
std::vector<SourceRecipe> SourcesIn(const RecipeFields& fields) {
  std::vector<SourceRecipe> sources;
  const YamlNode* list = fields.Value("sources");
  if (list == nullptr) return sources;
  for (const YamlNode& item : list->items) {
    SourceRecipe& source = sources.emplace_back(Defaults<SourceRecipe>());
    fields.Inner("sources", item, item.where).Fill(source);
    source.where = item.where;
  }
  return sources;
}

void ReadEvaluationSets(const RecipeFields& fields, EvaluationRecipe& evaluation) {
  evaluation.where = fields.where();
  const YamlNode* list = fields.Value("sets");
  if (list == nullptr) return;
  for (const YamlNode& item : list->items) {
    const RecipeFields inner = fields.Inner("sets", item, item.where);
    EvaluationSetRecipe& set = evaluation.sets.emplace_back(Defaults<EvaluationSetRecipe>());
    inner.Fill(set);
    set.sources = SourcesIn(inner);
    if (item.is_map()) set.where = item.where;  // told; without a location it is not checked what the set needs
  }
}

// Sets the levels of lints. Must run before the first warning.
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

Recipe FillRecipe(const YamlNode& tree, std::set<std::string, std::less<>> damaged, Diagnostics& problems) {
  const RecipeFields fields(tree);
  Recipe recipe = Defaults<Recipe>();
  recipe.damaged = std::move(damaged);
  ReadLints(fields, problems);
  // All sections with a fixed struct. Named maps and lists of maps follow: their number is not fixed.
  fields.Fill(recipe);
  recipe.digest = RecipeDigest(tree);
  ReadModules(fields, recipe, problems);
  ReadBridges(fields, recipe);
  ReadRateParts(fields.Section("optimizer"), recipe);
  if (recipe.initialize) ReadWeightSources(fields.Section("initialize"), *recipe.initialize);
  if (recipe.evaluation) ReadEvaluationSets(fields.Section("evaluation"), *recipe.evaluation);
  recipe.budget.where = fields.Section("budget").where();
  const RecipeFields data = fields.Section("data");
  // With a wrong `kind` it is unknown which keys the section must have: without a location it is not checked.
  if (!data.Has("kind") || AllKnown(recipe.data.kind)) recipe.data.where = data.where();
  if (RowOf(*recipe.data.kind).mixed) recipe.data.sources = SourcesIn(data);
  CheckDataSettings(recipe, data, problems);
  return recipe;
}

}  // namespace

Recipe RecipeOfTree(YamlNode tree, Diagnostics& problems) {
  auto written = std::make_shared<const YamlNode>(tree);
  MendedTree mended = MendTree(tree, problems);
  std::set<std::string, std::less<>> damaged = CheckKeys(tree, mended.told, problems);
  damaged.merge(mended.damaged);
  Recipe recipe = FillRecipe(tree, std::move(damaged), problems);
  recipe.tree = std::move(written);
  CheckModuleSettings(recipe, problems);
  CheckCheckpointSettings(recipe.checkpoint, problems);
  CheckEvaluationSettings(recipe, problems);
  CheckRatePartSettings(recipe, problems);
  if (recipe.initialize) CheckInitializeSettings(recipe, *recipe.initialize, problems);
  CheckLaunchSettings(recipe, problems);
  LintValues(recipe, tree, problems);
  if (recipe.modules.size() > kMostModules) {  // told; checks of pairs of modules would take long
    recipe.modules.clear();
    recipe.damaged.insert("modules");
  }
  if (problems.has_errors()) recipe.damaged.insert("");
  return recipe;
}

std::optional<Recipe> ReadRecipe(const std::string& path, const std::vector<std::string>& overrides,
                                 Diagnostics& problems) {
  std::optional<YamlNode> tree = ReadRecipeTree(path, overrides, problems);
  if (!tree) return std::nullopt;
  return RecipeOfTree(*std::move(tree), problems);
}

std::optional<Recipe> ReadRecipe(YamlNode tree, const std::vector<std::string>& overrides, Diagnostics& problems) {
  if (!ApplyOverrides(overrides, tree, problems)) return std::nullopt;
  return RecipeOfTree(std::move(tree), problems);
}

std::optional<Recipe> ReadRecipeText(const std::string& text, const std::string& name, Diagnostics& problems) {
  std::optional<YamlNode> tree = RecipeTreeOfText(text, name, problems);
  if (!tree) return std::nullopt;
  return RecipeOfTree(*std::move(tree), problems);
}

void AddOverrides(const std::vector<std::string>& overrides, SourceTexts& texts) {
  // Line i is override i, as ReadRecipeTree numbers them.
  texts.Add(kCommandLine, absl::StrJoin(overrides, "\n"));
}

}  // namespace planwright
