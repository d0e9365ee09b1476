#include "planner/search/mini_recipe.h"

#include <numeric>

#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

constexpr int64_t kManyNodes = 1 << 14;

// One layer of each kind of the model, in the order in which they first come.
std::string KindsOnce(const ModelRecipe& model) {
  const std::string pattern = *PatternOf(model);
  std::string kinds;
  for (char letter : pattern) {
    if (letter != '|' && letter != '/' && kinds.find(letter) == std::string::npos) kinds += letter;
  }
  return kinds;
}

void KeepLayers(ModelRecipe& model, const std::string& letters) {
  if (auto* language = std::get_if<HybridLmModel>(&model.model)) language->pattern.value = letters;
  if (auto* encoder = std::get_if<RadioVitModel>(&model.model))
    encoder->layers.value = static_cast<int64_t>(letters.size());
}

}  // namespace

Recipe MiniRecipe(const TunedRecipe& tuned, size_t of, const ModuleChoice& choice, std::string_view recompute,
                  int64_t samples) {
  Candidate candidate = CandidateOf(tuned.recipe);
  int64_t ranks = std::lcm(choice.tp * choice.cp, choice.expert_tp * choice.ep);
  const int64_t lanes = ranks / (choice.tp * choice.cp);
  for (size_t m = 0; m < candidate.modules.size(); ++m) {
    ModuleChoice& module = candidate.modules[m];
    if (m == of) {
      module = choice;
      module.first_rank = 0, module.ranks = ranks, module.pp = 1;
      module.recompute = {std::string(recompute)};
    } else {
      module = ModuleChoice{};
    }
    module.stage_layers.clear();
  }
  const bool language = CarriesLoss(tuned.recipe.modules[of].model);
  int64_t first = ranks;
  for (size_t m = 0; m < candidate.modules.size(); ++m) {
    if (m == of) continue;
    ModuleChoice& module = candidate.modules[m];
    // The language model has a lane for each sample of an encoder's lane.
    module.ranks = !language && CarriesLoss(tuned.recipe.modules[m].model) ? samples * lanes : 1;
    module.first_rank = first;
    first += module.ranks;
  }
  candidate.step = {
      .micro_samples = language ? samples : 1, .buckets = 1, .overlap_reduce = false, .overlap_gather = false};
  Recipe recipe = WithCandidate(tuned.recipe, candidate);
  for (size_t m = 0; m < recipe.modules.size(); ++m) {
    ModuleRecipe& module = recipe.modules[m];
    module.first_stage_layers.reset(), module.last_stage_layers.reset();
    const std::string kinds = KindsOnce(module.model);
    KeepLayers(module.model, m == of ? kinds : kinds.substr(0, 1));
  }
  recipe.batch.global_samples.value = samples * lanes;
  recipe.cluster.nodes.value = kManyNodes;
  recipe.initialize.reset();
  recipe.checkpoint = {};
  return recipe;
}

Cluster MiniCluster(const TunedRecipe& tuned) {
  Cluster cluster = tuned.cluster;
  cluster.nodes = static_cast<int>(kManyNodes);
  cluster.host_memory = 0;
  cluster.profile = {};
  return cluster;
}

}  // namespace planwright
