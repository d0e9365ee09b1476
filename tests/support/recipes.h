// Small recipes as plain data, so that a test of one room needs no YAML.
#pragma once

#include "planner/recipe/fill_defaults.h"
#include "planner/recipe/recipe.h"

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
  encoder.model.name = std::string("tiny_vit");
  encoder.model.kind = std::string("radio_vit");
  RadioVitModel vit = Defaults<RadioVitModel>();
  vit.layers = 2, vit.hidden = 32, vit.heads = 4, vit.ffn = 64, vit.patch = 4, vit.class_tokens = 2, vit.max_image = 64;
  vit.pixel_shuffle = 2, vit.positions = std::string("interpolate"), vit.projector_hidden = 48;
  encoder.model.model = vit;
  encoder.first_rank = int64_t{0};
  encoder.ranks = int64_t{layout.encoder_ranks};
  encoder.tp = int64_t{layout.encoder_tp};

  ModuleRecipe language = Defaults<ModuleRecipe>();
  language.name = std::string("language");
  language.model.name = std::string("tiny_lm");
  language.model.kind = std::string("hybrid_lm");
  HybridLmModel lm = Defaults<HybridLmModel>();
  lm.pattern = std::string("ME*E"), lm.hidden = 32, lm.vocabulary = 96, lm.init_std = 0.02;
  lm.attention = {int64_t{4}, int64_t{8}, int64_t{2}};
  lm.mamba = {int64_t{8}, int64_t{8}, int64_t{2}, int64_t{16}, int64_t{4}, int64_t{8}};
  lm.moe.experts = int64_t{8}, lm.moe.top_k = int64_t{3}, lm.moe.ffn = int64_t{24}, lm.moe.shared_ffn = int64_t{32};
  lm.moe.scale = 2.5, lm.moe.aux_loss = 1e-2, lm.constants["moe.bias_rate"] = 1e-3, lm.moe.imbalance = 0.0;
  lm.sections = {"attention", "mamba", "moe"};
  language.model.model = lm;
  language.first_rank = int64_t{layout.colocated ? 0 : layout.encoder_ranks};
  language.ranks = int64_t{layout.language_ranks};
  language.tp = int64_t{layout.tp};
  language.ep = int64_t{layout.ep};

  recipe.modules = {encoder, language};
  recipe.bridges = {{std::string("radio_encoder"), std::string("language"), {}}};
  return recipe;
}

}  // namespace planwright::testing
