#include "planner/search/results/started_recipe.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/near_name.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/yaml_comments.h"
#include "planner/search/results/tuned_recipe.h"

namespace planwright {
namespace {

struct NamedModel {
  std::string name, kind;
  const YamlNode* keys = nullptr;
  bool language() const {
    const ModelStatement* statement = StatementOf(kind);
    return statement && statement->carries_loss;
  }
};

std::string WordOf(const YamlNode& map, const char* key) {
  const YamlEntry* entry = map.Find(key);
  return entry && entry->value.is_scalar() ? entry->value.text : "";
}

std::vector<NamedModel> ModelsOf(const YamlNode& tree) {
  std::vector<NamedModel> models;
  const YamlEntry* section = tree.Find("models");
  if (!section || !section->value.is_map()) return models;
  for (const YamlEntry& entry : section->value.entries)
    models.push_back({entry.key, WordOf(entry.value, "kind"), &entry.value});
  // Encoders have the first ranks, as in other recipes.
  std::stable_partition(models.begin(), models.end(), [](const NamedModel& model) { return !model.language(); });
  return models;
}

// Four samples for each GPU at least, and a number that many layouts divide. A recipe has no more than 65,536.
int64_t SamplesFor(int64_t gpus) {
  constexpr int64_t kMost = 49'152;
  int64_t samples = 192;
  while (samples < 4 * gpus && samples < kMost) samples *= 2;
  return samples;
}

// A grid that the encoder takes, of the size of a usual picture: 64 x 64 patches of 16 pixels.
std::string GridsOf(const std::vector<NamedModel>& models) {
  int64_t side = 64, step = 1;
  for (const NamedModel& model : models) {
    if (model.language()) continue;
    const int64_t patch = std::max<int64_t>(1, SizeOfModel(*model.keys, "patch", 16));
    step = std::max<int64_t>(step, SizeOfModel(*model.keys, "pixel_shuffle", 1));
    side = std::min(side, SizeOfModel(*model.keys, "max_image", 1024) / patch);
  }
  side = std::max(step, side - side % step);
  return absl::StrCat("[[", side, ", ", side, "]]");
}

// The name, the cluster, and modules of all models together on all ranks, with bridges into the language model.
std::vector<std::string> ClusterKeys(const std::string& name, const std::vector<NamedModel>& models, int64_t gpus) {
  std::vector<std::string> keys = {
      absl::StrCat("name=", name), absl::StrCat("cluster.nodes=", std::max<int64_t>(1, gpus / kGpusOfANode)),
      absl::StrCat("cluster.gpus_per_node=", std::min(gpus, kGpusOfANode)), "cluster.gpu=h100_sxm"};
  const auto encoders = std::count_if(models.begin(), models.end(), [](const NamedModel& m) { return !m.language(); });
  std::vector<std::string> bridges;
  for (const NamedModel& model : models) {
    const std::string module = model.language() ? "language" : encoders == 1 ? EncoderModule(*model.keys) : model.name;
    const std::string key = absl::StrCat("modules.", module, ".");
    keys.push_back(absl::StrCat(key, "model=", model.name));
    keys.push_back(absl::StrCat(key, "placement.first_rank=0"));
    keys.push_back(absl::StrCat(key, "placement.ranks=", gpus));
    keys.push_back(absl::StrCat(key, "parallel.tp=1"));
    if (!model.language()) bridges.push_back(absl::StrCat("{from: ", module, ", to: language}"));
  }
  if (!bridges.empty()) keys.push_back(absl::StrCat("bridges=[", absl::StrJoin(bridges, ", "), "]"));
  return keys;
}

// `has_image_token`: the file of the models says it.
std::vector<std::string> KeysFor(const std::string& name, const std::vector<NamedModel>& models, bool has_image_token,
                                 int64_t gpus) {
  std::vector<std::string> keys = ClusterKeys(name, models, gpus);
  int64_t vocabulary = 0;
  for (const NamedModel& model : models) {
    if (model.language()) vocabulary = SizeOfModel(*model.keys, "vocabulary", 0);
  }
  const int64_t samples = SamplesFor(gpus);
  for (std::string key :
       {absl::StrCat("batch.global_samples=", samples), std::string("batch.micro_samples=1"),
        std::string("batch.sequence_length=8192"), absl::StrCat("budget.train_samples=", 1000 * samples),
        std::string("budget.learning_rate.peak=2.0e-4"), std::string("budget.learning_rate.min=2.0e-6"),
        absl::StrCat("budget.learning_rate.warmup_samples=", 20 * samples),
        absl::StrCat("budget.learning_rate.decay_samples=", 1000 * samples),
        std::string("budget.learning_rate.style=cosine"), std::string("budget.weight_decay.start=0.1"),
        std::string("budget.weight_decay.end=0.1"), std::string("optimizer.clip_grad_norm=1.0"),
        std::string("precision.params=bf16"), std::string("data.kind=mock"), std::string("data.seed=1234")})
    keys.push_back(std::move(key));
  if (models.size() > 1) {
    if (!has_image_token)
      keys.push_back(absl::StrCat("data.image_token=", std::max<int64_t>(0, std::min<int64_t>(511, vocabulary - 1))));
    keys.push_back(absl::StrCat("data.image_grids=", GridsOf(models)));
  }
  keys.emplace_back("checkpoint.every_steps=100");
  keys.emplace_back("checkpoint.keep_last=2");
  // Few tokens of mock samples have a loss, and nobody judges the balance of experts on them.
  const auto experts = [](const NamedModel& model) { return model.keys->Find("moe") != nullptr; };
  if (std::any_of(models.begin(), models.end(), experts)) keys.emplace_back("lints.PW0605=off");
  return keys;
}

// The models of a file that the program contains, with all its comments but that of the first line, which names a
// schema by a path that is another one elsewhere.
YamlEntry ModelsWithComments(const BuiltInModel& known) {
  std::optional<YamlNode> tree = ParseValue(known.text);
  Require(tree && tree->entries.size() == 1 && ReadComments(known.text, known.name, *tree).ok(),
          "a file of models has one section and can be formatted");
  YamlEntry models = std::move(tree->entries[0]);
  YamlComments comments = models.value.comments ? *models.value.comments : YamlComments();
  comments.blank = true;
  std::vector<std::string> above = tree->comments ? tree->comments->above : std::vector<std::string>();
  if (!above.empty() && above[0].starts_with("# yaml-language-server:")) above.erase(above.begin());
  comments.above.insert(comments.above.begin(), above.begin(), above.end());
  models.value.comments = std::make_shared<const YamlComments>(std::move(comments));
  return models;
}

// The name of a file as that of a recipe, which can be written anywhere: letters, digits and _.-; others become _.
std::string NameOf(const std::string& file) {
  std::string name;
  for (const char c : file) {
    const bool follows = (static_cast<unsigned char>(c) & 0xC0) == 0x80;  // a letter of several bytes is one
    if (!follows) name += absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-' ? c : '_';
  }
  return name;
}

}  // namespace

std::string EncoderModule(const YamlNode& model) {
  const ModelStatement* statement = StatementOf(WordOf(model, "kind"));
  return statement ? statement->first_module : ModelStatement().first_module;
}

int64_t SizeOfModel(const YamlNode& model, const std::string& key, int64_t otherwise) {
  const ModelStatement* statement = StatementOf(WordOf(model, "kind"));
  const StatedKey* stated = statement ? statement->FindKey(key) : nullptr;
  int64_t number = otherwise;
  if (stated && !stated->default_text.empty() && !absl::SimpleAtoi(stated->default_text, &number)) number = otherwise;
  const YamlNode* node = NodeAt(model, key);
  if (node) ReadInteger(*node, &number, nullptr);
  return number;
}

StartedRecipe StartWithModels(const std::string& name, YamlEntry models, const std::vector<std::string>& keys,
                              int64_t gpus) {
  YamlNode tree;
  tree.kind = YamlNode::Kind::kMap;
  tree.entries.push_back(std::move(models));
  StartedRecipe recipe{.initialized = true};
  recipe.own.kind = YamlNode::Kind::kMap;
  std::vector<std::string> all = ClusterKeys(absl::StrCat(NameOf(name), "_", gpus, "g"), ModelsOf(tree), gpus);
  all.insert(all.end(), keys.begin(), keys.end());
  const absl::Status status = LayOverrides(all, recipe.own);
  Require(status.ok(), "the keys of a first recipe are overrides");
  recipe.own.entries.push_back(std::move(tree.entries[0]));
  return recipe;
}

absl::StatusOr<StartedRecipe> StartRecipe(const std::string& model, int64_t gpus, Diagnostics& diagnostics) {
  StartedRecipe recipe;
  std::optional<YamlNode> tree;
  std::vector<std::string> names;
  const BuiltInModel* built_in = nullptr;
  for (const BuiltInModel& known : BuiltInModels()) {
    names.push_back(known.name);
    if (known.name != model) continue;
    built_in = &known;
    tree = RecipeTreeOfText(known.text, known.name, diagnostics);
  }
  const bool file = model.ends_with(".yaml") || model.ends_with(".yml");
  if (!tree && !file) {
    return absl::NotFoundError(absl::StrCat(
        "there is no model `", model, "`; ",
        NearNameHelp(
            model, names,
            absl::StrCat("there are ", absl::StrJoin(names, ", "), ", and files (.yaml) that `plan import` wrote"))));
  }
  if (!tree) {
    tree = ReadRecipeTree(model, {}, diagnostics);
    recipe.extends = model;
    recipe.initialized = tree && tree->Find("initialize") != nullptr;
  }
  if (!tree) return absl::InvalidArgumentError(absl::StrCat("cannot read ", model));
  // Modules of its own would stay beside those of the first recipe.
  if (tree->Find("modules")) {
    return absl::InvalidArgumentError(absl::StrCat(model, " has `modules`: of a whole recipe `plan tune ", model,
                                                   " --gpus ", gpus, "` searches the layouts"));
  }
  const std::vector<NamedModel> models = ModelsOf(*tree);
  const auto languages = std::count_if(models.begin(), models.end(), [](const NamedModel& m) { return m.language(); });
  if (languages != 1) {
    return absl::InvalidArgumentError(absl::StrCat(model, " must have one language model (kind: ", LanguageKinds(),
                                                   ") in `models`; found ", languages));
  }
  const std::string stem = std::filesystem::path(model).stem().string();
  const YamlEntry* data = tree->Find("data");
  const bool has_image_token = data && data->value.is_map() && data->value.Find("image_token");
  recipe.own.kind = YamlNode::Kind::kMap;
  const auto keys = KeysFor(absl::StrCat(NameOf(stem), "_", gpus, "g"), models, has_image_token, gpus);
  Require(LayOverrides(keys, recipe.own).ok(), "the keys of a first recipe are overrides");
  if (built_in) recipe.own.entries.push_back(ModelsWithComments(*built_in));
  return recipe;
}

absl::StatusOr<std::string> TextOfStarted(const StartedRecipe& recipe, const std::vector<std::string>& changes,
                                          const std::string& comment, const std::string& path) {
  YamlNode tree = recipe.own;
  if (absl::Status status = LayOverrides(changes, tree); !status.ok()) return status;
  return TextOfFile(std::move(tree), recipe.extends, comment, path);
}

}  // namespace planwright
