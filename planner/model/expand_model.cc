#include "planner/model/expand_model.h"

#include "planner/diagnostics/bug.h"
#include "planner/model/expand_language.h"
#include "planner/model/expand_radio.h"
#include "planner/model/stage_split.h"
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
  const bool encoder = std::holds_alternative<RadioVitModel>(recipe.model.model);
  std::vector<std::string> kinds;
  for (const char* kind : {"mamba", "attention", "moe", "block"}) {
    const bool exists = encoder == (std::string_view(kind) == "block");
    for (const Located<std::string>& word : recipe.recompute) {
      if (*word == kind || (exists && *word == "full")) {
        kinds.emplace_back(kind);
        break;
      }
    }
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
  Diagnostics none;
  const auto stages = StagesOfLayers(recipe, none);
  Require(stages.has_value(), "the stage split passed its check");
  if (const auto* model = std::get_if<HybridLmModel>(&recipe.model.model)) {
    ExpandLanguage(*model, sequence, *stages, module);
  } else {
    ExpandRadio(std::get<RadioVitModel>(recipe.model.model), target, ImagesOfSample(data, sequence).patches, *stages, module);
  }
  return module;
}

}  // namespace planwright
