// Small recipes built in code, for rooms after the reader. Every field that a test may break has its own line.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/recipe/fill_defaults.h"
#include "planner/recipe/recipe.h"
#include "tests/support/model_numbers.h"

namespace planwright {

inline Location Line(int line) { return {std::make_shared<const std::string>("recipe.yaml"), line, 1, 1}; }

struct Parallel {
  int tp = 1, cp = 1, pp = 1, ep = 1, expert_tp = 1;
};

// Fields of a module stand on lines `line` (name) to `line` + 8.
inline ModuleRecipe BuildModule(const std::string& name, int first_rank, int ranks, const Parallel& parallel,
                                int line) {
  ModuleRecipe module = Defaults<ModuleRecipe>();
  module.name = {name, Line(line)};
  module.placement = Line(line + 1);
  module.first_rank = {first_rank, Line(line + 1)};
  module.ranks = {ranks, Line(line + 2)};
  module.tp = {parallel.tp, Line(line + 3)};
  module.cp = {parallel.cp, Line(line + 4)};
  module.pp = {parallel.pp, Line(line + 5)};
  module.ep = {parallel.ep, Line(line + 6)};
  module.expert_tp = {parallel.expert_tp, Line(line + 7)};
  return module;
}

inline ModuleRecipe BuildLanguage(int first_rank, int ranks, const Parallel& parallel = {}, int line = 100,
                                  const std::string& name = "language") {
  ModuleRecipe module = BuildModule(name, first_rank, ranks, parallel, line);
  ModelRecipe& model = module.model = DefaultModel("hybrid_lm");
  model.name = {"nemotron_hybrid_moe_20l", Line(299)};
  model.pattern = {"MEMEM*EMEMEM*EMEMEM*", Line(300)};
  Give(model, {{"hidden", 2688}, {"vocabulary", 131072, Line(301)}});
  Give(model, {{"attention.heads", 32, Line(302)}, {"attention.head_dim", 128}, {"attention.kv_groups", 8, Line(303)}});
  Give(model,
       {{"mamba.heads", 64, Line(304)}, {"mamba.head_dim", 64}, {"mamba.groups", 8, Line(305)}, {"mamba.state", 128}});
  Give(model, {{"moe.experts", 128, Line(306)},
               {"moe.top_k", 6, Line(307)},
               {"moe.ffn", 1856, Line(308)},
               {"moe.shared_ffn", 3712, Line(309)},
               {"moe.scale", 2.5},
               {"moe.aux_loss", 1e-4},
               {"moe.bias_rate", 1e-3},
               {"moe.imbalance", 2.0}});
  model.sections = {"attention", "mamba", "moe"};
  return module;
}

inline ModuleRecipe BuildEncoder(int first_rank, int ranks, const Parallel& parallel = {}, int line = 200,
                                 const std::string& name = "images") {
  ModuleRecipe module = BuildModule(name, first_rank, ranks, parallel, line);
  ModelRecipe& model = module.model = DefaultModel("radio_vit");
  model.name = {"radio_vit_h", Line(399)};
  model.pattern = std::string(32, 'V');
  Give(model, {{"hidden", 1280, Line(401)},
               {"heads", 16, Line(402)},
               {"ffn", 5120, Line(403)},
               {"patch", 16, Line(404)},
               {"class_tokens", 8},
               {"max_image", 2048, Line(405)},
               {"pixel_shuffle", 2, Line(406)},
               {"projector.hidden", 20480, Line(407)}});
  return module;
}

// Modules, and a bridge from every encoder to the language module. No cluster: the modules make the world.
inline Recipe BuildRecipe(std::vector<ModuleRecipe> modules) {
  Recipe recipe = Defaults<Recipe>();
  recipe.name = {"test", Line(1)};
  std::string language;
  for (const ModuleRecipe& module : modules) {
    if (CarriesLoss(module.model)) language = *module.name;
  }
  for (const ModuleRecipe& module : modules) {
    if (!CarriesLoss(module.model) && !language.empty())
      recipe.bridges.push_back({.from = {*module.name, Line(50)}, .to = {language, Line(50)}, .where = Line(50)});
  }
  recipe.modules = std::move(modules);
  recipe.batch = {{8, Line(10)}, {1, Line(11)}, {8192, Line(12)}};
  recipe.budget.where = Line(20);
  recipe.budget.train_samples = {80, Line(21)};
  recipe.budget.learning_rate.peak = {1e-3, Line(22)};
  recipe.budget.learning_rate.min = {1e-5, Line(23)};
  return recipe;
}

}  // namespace planwright
