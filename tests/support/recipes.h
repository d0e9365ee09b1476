// Small recipes as plain data, so that a test of one room needs no YAML.
#pragma once

#include "planner/recipe/fill_defaults.h"
#include "planner/recipe/recipe.h"
#include "tests/support/model_numbers.h"

namespace planwright::testing {

struct TinyLayout {
  int encoder_ranks = 1, encoder_tp = 1;
  int language_ranks = 1, tp = 1, ep = 1;
  bool colocated = true;
  int micro_samples = 1;
};

// A `ME*E` language model fed by a two-layer encoder; mock data, 8 samples a step.
inline Recipe TinyRecipe(const TinyLayout& layout) {
  Recipe recipe = Defaults<Recipe>();
  recipe.name = std::string("tiny");
  recipe.precision = std::string("fp64");
  recipe.batch = {int64_t{8}, int64_t{layout.micro_samples}, int64_t{48}};
  recipe.budget.train_samples = int64_t{160};
  recipe.budget.learning_rate.peak = 1e-3;
  recipe.data.image_token = Located<int64_t>(int64_t{5});
  recipe.data.image_grids = {Located(std::vector<int64_t>{4, 6}), Located(std::vector<int64_t>{2, 4})};

  ModuleRecipe encoder = Defaults<ModuleRecipe>();
  encoder.name = std::string("radio_encoder");
  encoder.model = DefaultModel("radio_vit");
  encoder.model.name = std::string("tiny_vit");
  encoder.model.pattern = std::string("VV");
  Give(encoder.model, {{"hidden", 32},
                       {"heads", 4},
                       {"ffn", 64},
                       {"patch", 4},
                       {"class_tokens", 2},
                       {"max_image", 64},
                       {"projector.hidden", 48}});
  encoder.first_rank = int64_t{0};
  encoder.ranks = int64_t{layout.encoder_ranks};
  encoder.tp = int64_t{layout.encoder_tp};

  ModuleRecipe language = Defaults<ModuleRecipe>();
  language.name = std::string("language");
  language.model = DefaultModel("hybrid_lm");
  language.model.name = std::string("tiny_lm");
  language.model.pattern = std::string("ME*E");
  Give(language.model, {{"hidden", 32}, {"vocabulary", 96}});
  Give(language.model, {{"attention.heads", 4}, {"attention.head_dim", 8}, {"attention.kv_groups", 2}});
  Give(language.model,
       {{"mamba.heads", 8}, {"mamba.head_dim", 8}, {"mamba.groups", 2}, {"mamba.state", 16}, {"mamba.chunk", 8}});
  Give(language.model, {{"moe.experts", 8},
                        {"moe.top_k", 3},
                        {"moe.ffn", 24},
                        {"moe.shared_ffn", 32},
                        {"moe.scale", 2.5},
                        {"moe.aux_loss", 1e-2},
                        {"moe.bias_rate", 1e-3}});
  language.model.sections = {"attention", "mamba", "moe"};
  language.first_rank = int64_t{layout.colocated ? 0 : layout.encoder_ranks};
  language.ranks = int64_t{layout.language_ranks};
  language.tp = int64_t{layout.tp};
  language.ep = int64_t{layout.ep};

  recipe.modules = {encoder, language};
  recipe.bridges = {{std::string("radio_encoder"), std::string("language"), {}}};
  return recipe;
}

}  // namespace planwright::testing
