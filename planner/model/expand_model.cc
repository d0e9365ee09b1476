#include "planner/model/expand_model.h"

#include <algorithm>

#include "planner/diagnostics/bug.h"
#include "planner/model/expand_language.h"
#include "planner/model/expand_radio.h"
#include "planner/model/stage_split.h"
#include "planner/plan/layer_kinds.h"
#include "planner/plan/sample_images.h"

namespace planwright {

std::string LayersOf(const HybridLmModel& model) {
  std::string layers;
  for (char c : *model.pattern) {
    if (c != '|') layers += c;
  }
  return layers;
}

std::vector<std::string> RecomputedKinds(const ModuleRecipe& recipe) {
  const auto of =
      std::holds_alternative<RadioVitModel>(recipe.model.model) ? LayerKind::Of::kEncoder : LayerKind::Of::kLanguage;
  std::vector<std::string> kinds;
  for (const LayerKind& kind : LayerKinds()) {
    const bool wanted = std::any_of(
        recipe.recompute.begin(), recipe.recompute.end(),
        [&](const Located<std::string>& word) { return *word == kind.word || (kind.of == of && *word == "full"); });
    if (wanted) kinds.emplace_back(kind.word);
  }
  return kinds;
}

ProjectorTarget TargetOf(const HybridLmModel& model) {
  return {model.hidden, model.init_std, static_cast<int64_t>(LayersOf(model).size())};
}

Module ExpandModule(const ModuleRecipe& recipe, const Grid& grid, const ProjectorTarget& target, int64_t sequence,
                    const DataPlan& data) {
  Module module;
  module.name = recipe.name;
  module.model = recipe.model.name;
  module.kind = recipe.model.kind;
  module.grid = grid;
  const bool encoder = std::holds_alternative<RadioVitModel>(recipe.model.model);
  module.trains_backbone = *recipe.train_backbone == "trained";
  module.trains_projection = encoder ? *recipe.train_projection == "trained" : module.trains_backbone;
  module.recompute = RecomputedKinds(recipe);
  Diagnostics none;  // topology has reported the problems of the split
  const auto stages = StagesOfLayers(recipe, none);
  Require(stages.has_value(), "the layers can be split into stages");
  if (const auto* model = std::get_if<HybridLmModel>(&recipe.model.model)) {
    ExpandLanguage(*model, sequence, *stages, module);
  } else {
    const EncoderData* images = data.FindEncoder(module.name);
    Require(images != nullptr, "the data knows encoder " + module.name);
    ExpandRadio(std::get<RadioVitModel>(recipe.model.model), target, ImagesOfSample(data, *images, sequence).patches,
                *stages, module);
  }
  return module;
}

}  // namespace planwright
