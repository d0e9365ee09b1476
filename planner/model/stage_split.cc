#include "planner/model/stage_split.h"

#include "planner/model/layer_pattern.h"

namespace planwright {
namespace {

template <typename T>
std::optional<T> ValueOf(const std::optional<Located<T>>& written) {
  return written ? std::optional<T>(**written) : std::nullopt;
}

}  // namespace

Location PlaceOfStages(const ModuleRecipe& module) {
  if (module.stage_layers) return module.stage_layers->where;
  if (module.first_stage_layers) return module.first_stage_layers->where;
  if (module.last_stage_layers) return module.last_stage_layers->where;
  if (const auto* language = std::get_if<HybridLmModel>(&module.model.model)) return language->pattern.where;
  return std::get<RadioVitModel>(module.model.model).layers.where;
}

std::optional<std::vector<int>> StagesOfLayers(const ModuleRecipe& module, Diagnostics& diagnostics) {
  LayerPattern pattern;
  if (const auto* language = std::get_if<HybridLmModel>(&module.model.model)) {
    const auto parsed = ParseLayerPattern(language->pattern, diagnostics);
    if (!parsed) return std::nullopt;
    pattern = *parsed;
  } else {
    const auto& layers = std::get<RadioVitModel>(module.model.model).layers;
    pattern.layers = std::string(*layers, 'V');
    pattern.segments = {pattern.layers};
  }
  const StageSplit split = {.pp = static_cast<int>(*module.pp),
                            .first_layers = ValueOf(module.first_stage_layers),
                            .last_layers = ValueOf(module.last_stage_layers),
                            .stage_layers = ValueOf(module.stage_layers)};
  const auto runs = SplitIntoStages(pattern, split, PlaceOfStages(module), diagnostics);
  if (!runs) return std::nullopt;
  std::vector<int> stages;
  for (const LayerStage& run : *runs) stages.insert(stages.end(), run.layers.size(), run.pp_rank);
  return stages;
}

}  // namespace planwright
