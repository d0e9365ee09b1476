#include "tests/plan/statement/small_modules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/compile/model/expand_model.h"
#include "planner/compile/model/expand_statement.h"
#include "planner/plan/statement/adapted_statement.h"
#include "planner/plan/statement/prime_module.h"
#include "tests/support/recipe_builder.h"

namespace planwright::testing {
namespace {

constexpr int64_t kSequence = 96;

ModuleRecipe SmallLanguage() {
  ModuleRecipe module = BuildLanguage(0, 8, {.tp = 2, .ep = 2, .expert_tp = 2});
  ModelRecipe& model = module.model;
  model.pattern = std::string("ME*-");
  Give(model, {{"hidden", 50}, {"vocabulary", 110}, {"init_std", 0.03}, {"norm_eps", 3e-5}, {"mlp.ffn", 34}});
  Give(model, {{"attention.heads", 6}, {"attention.head_dim", 10}, {"attention.kv_groups", 2}});
  Give(model, {{"mamba.heads", 8},
               {"mamba.head_dim", 7},
               {"mamba.groups", 4},
               {"mamba.state", 9},
               {"mamba.conv", 3},
               {"mamba.chunk", 16}});
  Give(model, {{"moe.experts", 12}, {"moe.top_k", 5}, {"moe.ffn", 22}, {"moe.shared_ffn", 26}});
  return module;
}

ModuleRecipe SmallEncoder() {
  ModuleRecipe module = BuildEncoder(0, 2, {.tp = 2});
  module.model.pattern = std::string("VV");
  Give(module.model, {{"hidden", 40},
                      {"heads", 4},
                      {"ffn", 70},
                      {"patch", 5},
                      {"class_tokens", 3},
                      {"max_image", 60},
                      {"projector.hidden", 46},
                      {"norm_eps", 2e-6},
                      {"projector.norm_eps", 7e-6},
                      {"init_std", 0.025}});
  module.train_backbone = std::string("frozen");
  module.train_projection = std::string("trained");
  return module;
}

// Modules of other kinds have prime sizes.
const std::vector<std::string> kWithRecipes = {"hybrid_lm", "radio_vit"};
bool HasRecipe(const ModelStatement& statement) {
  return std::find(kWithRecipes.begin(), kWithRecipes.end(), statement.kind) != kWithRecipes.end();
}

std::string DrawText(const Init& init) {
  std::string text(InitKindName(init.kind));
  if (init.a != 0 || init.b != 0) absl::StrAppend(&text, " ", init.a);
  if (init.b != 0) absl::StrAppend(&text, " ", init.b);
  return text;
}

std::string CutText(const Parameter& parameter) {
  if (parameter.shard_dim < 0) return "whole";
  const std::string segments =
      parameter.segments.size() > 1 ? absl::StrCat(" in [", absl::StrJoin(parameter.segments, ", "), "]") : "";
  return absl::StrCat("cut ", parameter.shard_dim, segments, parameter.padded ? " padded" : "");
}

Module ModuleOf(const ModelStatement& statement, const ModuleRecipe& recipe) {
  Module module;
  module.name = *recipe.name;
  module.kind = statement.kind;
  module.has_images = statement.has_images;
  module.carries_loss = statement.carries_loss;
  module.grid.tp = static_cast<int>(*recipe.tp);
  module.grid.ep = static_cast<int>(*recipe.ep);
  module.grid.expert_tp = static_cast<int>(*recipe.expert_tp);
  module.trains_backbone = *recipe.train_backbone == "trained";
  module.trains_projection = !statement.has_images || *recipe.train_projection == "trained";
  module.constants = ConstantsOf(recipe.model, recipe.model.numbers, {.hidden = 50, .init_std = 0.03, .layers = 4});
  for (const StatedConstant& constant : statement.constants) {
    if (constant.name == kAdapterRank) module.constants[kAdapterRank] = int64_t{3};
    if (constant.name == kAdapterAlpha) module.constants[kAdapterAlpha] = 5.0;
  }
  for (char letter : LayersOf(recipe.model))
    module.layers.push_back({.kind = letter, .frame = absl::StrCat(module.name, ".layers.", module.layers.size())});
  ExpandStatement(statement, ModelNumbers({.sequence_length = kSequence}, module, statement), false, module);
  return module;
}

// Of a kind that no recipe can have.
Module ModuleOfNoRecipe(const ModelStatement& statement) {
  Module module = PrimeModule(statement, 2);
  module.grid.tp = 2;
  module.trains_backbone = true, module.trains_projection = false;
  ExpandStatement(statement, ModelNumbers({.sequence_length = kSequence}, module, statement), false, module);
  return module;
}

// The parameters of a module as a table.
std::string DrawTable(const Module& module) {
  std::string table;
  for (const Storage& storage : module.storages) {
    for (int index : storage.parameters) {
      const Parameter& parameter = module.parameters[static_cast<size_t>(index)];
      const std::string experts = parameter.experts > 0 ? absl::StrCat(" x ", parameter.experts) : "";
      const char* stepped = parameter.buffer ? "buffer" : parameter.trained ? "trained" : "frozen";
      absl::StrAppend(&table, parameter.file_name, "\n  ", storage.slot, ": [", absl::StrJoin(parameter.shape, ", "),
                      "]", experts, ", ", CutText(parameter), ", ", DrawText(parameter.init), ", ", stepped,
                      parameter.decay ? ", decays" : "", "\n");
    }
    for (const SharedSlot& shared : storage.shared)
      absl::StrAppend(&table, "  also ", shared.frame, ".", shared.slot, "\n");
  }
  return table;
}

// Of a kind that no recipe here has: without what flags may say, and with more tp ranks than key heads, where it has
// heads. Empty: it has neither.
std::string BareTable(const ModelStatement& statement) {
  constexpr char kKeyHeads[] = "attention.kv_groups";
  Module module = PrimeModule(statement, 1);
  bool differs = module.constants.contains(kKeyHeads);
  if (differs) module.constants[kKeyHeads] = int64_t{1};
  for (const StatedConstant& constant : statement.constants) {
    if (!constant.flag) continue;
    module.constants[constant.name] = int64_t{0};
    differs = true;
  }
  module.grid.tp = 2;
  module.trains_backbone = true;
  ExpandStatement(statement, ModelNumbers({.sequence_length = kSequence}, module, statement), false, module);
  if (!differs) return "";
  return absl::StrCat("\n== ", statement.kind, " without flags, on more tp ranks than key heads\n", DrawTable(module));
}

}  // namespace

std::vector<std::string> ModelKinds() {
  std::vector<std::string> kinds = kWithRecipes;
  for (const ModelStatement& statement : BuiltInStatements()) {
    if (!HasRecipe(statement)) kinds.push_back(statement.kind);
  }
  return kinds;
}

Module SmallModule(const ModelStatement& statement) {
  if (!HasRecipe(statement)) return ModuleOfNoRecipe(statement);
  return ModuleOf(statement, statement.has_images ? SmallEncoder() : SmallLanguage());
}

std::string DrawTables(const ModelStatement& statement) {
  std::string tables = absl::StrCat("\n== ", statement.kind, "\n", DrawTable(SmallModule(statement)));
  if (!HasRecipe(statement)) return absl::StrCat(tables, BareTable(statement));
  if (statement.has_images) return tables;
  ModuleRecipe recipe = SmallLanguage();
  recipe.model.pattern = std::string("*");
  Give(recipe.model, {{"attention.kv_groups", 1}, {"vocabulary", 111}});
  return absl::StrCat(tables, "\n== ", statement.kind, " on more tp ranks than key heads, which do not divide ids\n",
                      DrawTable(ModuleOf(statement, recipe)));
}

}  // namespace planwright::testing
