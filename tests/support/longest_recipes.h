// Recipes as long as limits.h lets them be, each in another direction, with the layout and the settings that make plans longest: tensor parallel
// modules on ranks of their own, whose bridges part leaders from siblings, everything overlapped and run again.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/limits.h"

namespace planwright::testing {

// Overrides of recipes/nemotron_moe_vlm_tiny.yaml.
struct LongRecipe {
  std::string name;
  std::vector<std::string> overrides;
};

struct LongShape {
  std::string name;
  int encoders = 1, encoder_layers = 1, encoder_stages = 1;
  std::string pattern = "E";  // over and over
  int layers = 1, stages = 1;
  int more_microbatches = 0;  // than there may be
  friend std::ostream& operator<<(std::ostream& out, const LongShape& shape) { return out << shape.name; }
  int64_t all_stages() const { return stages + encoders * encoder_stages; }
  int64_t all_layers() const { return layers + encoders * encoder_layers; }
  int64_t microbatches() const { return kLongestStep / (all_layers() + kLayersLikeAStage * (all_stages() + encoders)) + more_microbatches; }
};

inline LongRecipe MakeLong(const LongShape& shape) {
  constexpr int kEncoderRanks = 6, kLanguageRanks = 8, kLanes = 2;  // of a stage: tp2 dp3, and tp2 cp2 dp2
  LongRecipe recipe = {shape.name, {}};
  const auto set = [&](const auto&... words) { recipe.overrides.push_back(absl::StrCat(words...)); };
  std::vector<std::string> bridges;
  int first = 0;
  for (int i = 0; i < shape.encoders; ++i) {
    const std::string name = i == 0 ? "radio_encoder" : absl::StrCat("encoder", i);
    set("modules.", name, "={model: radio_vit_tiny, placement: {first_rank: ", first, ", ranks: ", kEncoderRanks * shape.encoder_stages,
        "}, parallel: {tp: 2, pp: ", shape.encoder_stages, "}, recompute: block}");
    bridges.push_back(absl::StrCat("{from: ", name, ", to: language, token: ", 255 - i, "}"));
    first += kEncoderRanks * shape.encoder_stages;
  }
  set("modules.language={model: hybrid_moe_tiny, placement: {first_rank: ", first, ", ranks: ", kLanguageRanks * shape.stages,
      "}, parallel: {tp: 2, cp: 2, pp: ", shape.stages, ", ep: 4}, recompute: full}");
  set("bridges=[", absl::StrJoin(bridges, ", "), "]");
  set("cluster={nodes: ", first + kLanguageRanks * shape.stages, ", gpus_per_node: 1, gpu: h200_sxm}");
  std::string pattern;
  while (static_cast<int>(pattern.size()) < shape.layers) pattern += shape.pattern;
  set("models.hybrid_moe_tiny.pattern=\"", pattern.substr(0, static_cast<size_t>(shape.layers)), "\"");
  set("models.hybrid_moe_tiny.mamba.groups=8");
  set("models.hybrid_moe_tiny.attention.kv_groups=4");
  set("models.radio_vit_tiny.layers=", shape.encoder_layers);
  set("gradients={overlap_reduce: true, overlap_gather: true, buckets: ", kMostBuckets / 3 / shape.all_stages(), "}");
  set("batch={global_samples: ", shape.microbatches() * kLanes, ", micro_samples: 1, sequence_length: 96}");
  set("budget={train_samples: 1000000, learning_rate: {peak: 1.0e-3}}");
  set("data={kind: mock, image_token: 255, image_grids: [[2, 2]], max_images: 1, text_tokens: 2}");
  return recipe;
}

inline std::vector<LongShape> LongestShapes() {
  constexpr int kLayers = kMostLayers / 2, kStages = kMostStages / 2, kEncoders = static_cast<int>(kMostModules) - 1;
  return {
      {.name = "most microbatches"},
      {.name = "most layers", .encoder_layers = kLayers, .pattern = "ME*E", .layers = kLayers},
      {.name = "most expert layers", .layers = 2 * kLayers - 1},
      {.name = "most stages", .encoder_layers = kStages, .encoder_stages = kStages, .layers = kStages, .stages = kStages},
      {.name = "most layers on most stages", .encoder_layers = kLayers, .encoder_stages = kStages, .pattern = "ME*E", .layers = kLayers, .stages = kStages},
      {.name = "most encoders", .encoders = kEncoders},
      {.name = "most encoders on stages", .encoders = kEncoders, .encoder_layers = 8, .encoder_stages = 8, .layers = 8, .stages = 8},
      {.name = "a bit of all", .encoders = 3, .encoder_layers = 24, .encoder_stages = 2, .pattern = "ME*E", .layers = 48, .stages = 4},
      {.name = "many layers, many microbatches", .encoder_layers = 24, .layers = 24},
  };
}

inline std::vector<LongRecipe> LongestRecipes() {
  std::vector<LongRecipe> recipes;
  for (const LongShape& shape : LongestShapes()) recipes.push_back(MakeLong(shape));
  return recipes;
}

}  // namespace planwright::testing
