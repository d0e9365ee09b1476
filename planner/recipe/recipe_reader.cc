#include "planner/recipe/recipe_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "planner/diagnostics/near_name.h"
#include "planner/diagnostics/text.h"
#include "planner/diagnostics/utf8.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/recipe_checks.h"
#include "planner/recipe/recipe_digest.h"
#include "planner/recipe/recipe_fields.h"
#include "planner/recipe/recipe_tree.h"

namespace planwright {
namespace {

RadioVitModel ReadRadioVit(const RecipeFields& fields) {
  RadioVitModel model;
  fields.Read("layers", model.layers);
  fields.Read("hidden", model.hidden);
  fields.Read("heads", model.heads);
  fields.Read("ffn", model.ffn);
  fields.Read("patch", model.patch);
  fields.Read("class_tokens", model.class_tokens);
  fields.Read("max_image", model.max_image);
  fields.Read("pixel_shuffle", model.pixel_shuffle);
  fields.Read("positions", model.positions);
  fields.Read("norm_eps", model.norm_eps);
  fields.Read("init_std", model.init_std);
  const RecipeFields projector = fields.Section("projector");
  projector.Read("hidden", model.projector_hidden);
  projector.Read("norm_eps", model.projector_norm_eps);
  return model;
}

void ReadAttention(const RecipeFields& fields, HybridLmModel& model) {
  if (fields.given()) model.sections.insert("attention");
  fields.Read("heads", model.attention.heads);
  fields.Read("head_dim", model.attention.head_dim);
  fields.Read("kv_groups", model.attention.kv_groups);
}

void ReadMamba(const RecipeFields& fields, HybridLmModel& model) {
  if (fields.given()) model.sections.insert("mamba");
  fields.Read("heads", model.mamba.heads);
  fields.Read("head_dim", model.mamba.head_dim);
  fields.Read("groups", model.mamba.groups);
  fields.Read("state", model.mamba.state);
  fields.Read("conv", model.mamba.conv);
  fields.Read("chunk", model.mamba.chunk);
}

void ReadMoe(const RecipeFields& fields, HybridLmModel& model) {
  if (fields.given()) model.sections.insert("moe");
  fields.Read("experts", model.moe.experts);
  fields.Read("top_k", model.moe.top_k);
  fields.Read("ffn", model.moe.ffn);
  fields.Read("shared_ffn", model.moe.shared_ffn);
  fields.Read("scale", model.moe.scale);
  fields.Read("aux_loss", model.moe.aux_loss);
  fields.Read("bias_rate", model.moe.bias_rate);
  fields.Read("imbalance", model.moe.imbalance);
}

HybridLmModel ReadHybridLm(const RecipeFields& fields) {
  HybridLmModel model;
  fields.Read("pattern", model.pattern);
  fields.Read("hidden", model.hidden);
  fields.Read("vocabulary", model.vocabulary);
  fields.Read("init_std", model.init_std);
  fields.Read("norm_eps", model.norm_eps);
  ReadAttention(fields.Section("attention"), model);
  ReadMamba(fields.Section("mamba"), model);
  ReadMoe(fields.Section("moe"), model);
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
    inner.Read("kind", model.kind);
    if (model.kind.value == "radio_vit") {
      model.model = ReadRadioVit(inner);
    } else if (model.kind.value == "hybrid_lm") {
      model.model = ReadHybridLm(inner);
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

ModuleRecipe ReadModule(const RecipeFields& fields, const std::string& name, const std::map<std::string, ModelRecipe>& models,
                        const std::vector<std::string>& model_names, Diagnostics& problems) {
  ModuleRecipe module;
  module.name = {name, fields.where()};
  Located<std::string> reference;
  fields.Read("model", reference);
  module.model_reference = reference.where;
  if (const auto found = models.find(reference.value); found != models.end()) {
    module.model = found->second;
  } else if (reference.where.known() && std::find(model_names.begin(), model_names.end(), reference.value) == model_names.end()) {
    problems.Error(DiagnosticKind::kUnknownReference, reference.where, Cat("there is no model ", Quoted(reference.value)),
                   NearNameHelp(reference.value, model_names,
                                model_names.empty() ? "give it under `models`, or `extends` a file that does"
                                                    : Cat("`models` has ", absl::StrJoin(model_names, ", "))));
  }
  const RecipeFields placement = fields.Section("placement");
  module.placement = placement.where();
  placement.Read("first_rank", module.first_rank);
  placement.Read("ranks", module.ranks);
  const RecipeFields parallel = fields.Section("parallel");
  parallel.Read("tp", module.tp);
  parallel.Read("cp", module.cp);
  parallel.Read("pp", module.pp);
  parallel.Read("dp", module.dp);
  parallel.Read("ep", module.ep);
  parallel.Read("expert_tp", module.expert_tp);
  parallel.Read("stage_layers", module.stage_layers);
  parallel.Read("first_stage_layers", module.first_stage_layers);
  parallel.Read("last_stage_layers", module.last_stage_layers);
  const RecipeFields train = fields.Section("train");
  train.Read("backbone", module.train_backbone);
  train.Read("projection", module.train_projection);
  fields.Read("recompute", module.recompute);
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
    BridgeRecipe bridge;
    bridge.where = item.where;
    inner.Read("from", bridge.from);
    inner.Read("to", bridge.to);
    inner.Read("token", bridge.token);
    recipe.bridges.push_back(std::move(bridge));
  }
}

void ReadBatch(const RecipeFields& fields, BatchRecipe& batch) {
  fields.Read("global_samples", batch.global_samples);
  fields.Read("micro_samples", batch.micro_samples);
  fields.Read("sequence_length", batch.sequence_length);
}

void ReadLearningRate(const RecipeFields& fields, LearningRateRecipe& rate) {
  fields.Read("peak", rate.peak);
  fields.Read("min", rate.min);
  fields.Read("init", rate.init);
  fields.Read("warmup_samples", rate.warmup_samples);
  fields.Read("warmup_fraction", rate.warmup_fraction);
  fields.Read("decay_samples", rate.decay_samples);
  fields.Read("style", rate.style);
  const RecipeFields wsd = fields.Section("wsd");
  wsd.Read("decay_samples", rate.wsd_decay_samples);
  wsd.Read("style", rate.wsd_style);
}

void ReadBudget(const RecipeFields& fields, BudgetRecipe& budget) {
  budget.where = fields.where();
  fields.Read("train_samples", budget.train_samples);
  ReadLearningRate(fields.Section("learning_rate"), budget.learning_rate);
  const RecipeFields decay = fields.Section("weight_decay");
  decay.Read("start", budget.weight_decay.start);
  decay.Read("end", budget.weight_decay.end);
  decay.Read("style", budget.weight_decay.style);
}

void ReadTraining(const RecipeFields& fields, Recipe& recipe) {
  const RecipeFields optimizer = fields.Section("optimizer");
  optimizer.Read("name", recipe.optimizer.name);
  optimizer.ReadPair("betas", recipe.optimizer.beta1, recipe.optimizer.beta2);
  optimizer.Read("eps", recipe.optimizer.eps);
  optimizer.Read("clip_grad_norm", recipe.optimizer.clip_grad_norm);
  const RecipeFields gradients = fields.Section("gradients");
  gradients.Read("reduce_dtype", recipe.gradients.reduce_dtype);
  gradients.Read("overlap_reduce", recipe.gradients.overlap_reduce);
  gradients.Read("overlap_gather", recipe.gradients.overlap_gather);
  gradients.Read("buckets", recipe.gradients.buckets);
  fields.Section("precision").Read("params", recipe.precision);
  fields.Section("checkpoint").Read("every_steps", recipe.checkpoint.every_steps);
  fields.Section("log").Read("every_steps", recipe.log.every_steps);
}

void ReadData(const RecipeFields& fields, DataRecipe& data) {
  fields.Read("kind", data.kind);
  if (fields.Has("kind") && !data.kind.where.known()) return;  // which keys it should have depends on it
  data.where = fields.where();
  fields.Read("seed", data.seed);
  fields.Read("image_token", data.image_token);
  fields.Read("packed_documents", data.packed_documents);
  if (data.kind.value == "mock") {
    fields.Read("image_grids", data.image_grids);
    fields.Read("max_images", data.max_images);
    fields.Read("classes", data.classes);
    fields.Read("text_tokens", data.text_tokens);
  } else if (data.kind.value == "webdataset") {
    fields.Read("shards", data.shards);
    fields.Read("tokenizer", data.tokenizer);
    fields.Read("window", data.window);
    fields.Read("min_patches", data.min_patches);
    fields.Read("max_patches", data.max_patches);
  } else {
    fields.Read("path", data.path);
  }
}

void ReadInitialize(const RecipeFields& fields, Recipe& recipe) {
  if (!fields.given()) return;
  recipe.initialize.emplace();
  fields.Read("from", recipe.initialize->from);
  fields.Read("ignore", recipe.initialize->ignore);
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

void ReadCluster(const RecipeFields& fields, ClusterRecipe& cluster) {
  fields.Read("nodes", cluster.nodes);
  fields.Read("gpus_per_node", cluster.gpus_per_node);
  fields.Read("gpu", cluster.gpu);
}

Recipe Fill(const YamlNode& tree, std::set<std::string> damaged, Diagnostics& problems) {
  const RecipeFields fields(tree);
  Recipe recipe;
  recipe.damaged = std::move(damaged);
  // Sections whose values are looked at together while they are read.
  const auto read = [&](const char* section, auto reader) {
    const int64_t lost = ValuesLost(problems);
    reader();
    if (ValuesLost(problems) > lost) recipe.damaged.insert(section);
  };
  ReadLints(fields, problems);
  fields.Read("name", recipe.name);
  recipe.digest = RecipeDigest(tree);
  ReadCluster(fields.Section("cluster"), recipe.cluster);
  read("modules", [&] { ReadModules(fields, recipe, problems); });
  ReadBridges(fields, recipe);
  ReadBatch(fields.Section("batch"), recipe.batch);
  ReadBudget(fields.Section("budget"), recipe.budget);
  ReadTraining(fields, recipe);
  const RecipeFields data = fields.Section("data");
  read("data", [&] {
    ReadData(data, recipe.data);
    CheckData(recipe, data, problems);
  });
  ReadInitialize(fields.Section("initialize"), recipe);
  return recipe;
}

}  // namespace

std::optional<Recipe> ReadRecipe(const std::string& path, const std::vector<std::string>& overrides, Diagnostics& problems) {
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
