#include <string>
#include <string_view>

#include "planner/diagnostics/text.h"
#include "planner/plan/layer_kinds.h"
#include "planner/plan/limits.h"
#include "planner/recipe/recipe_checks.h"

namespace planwright {
namespace {

// Each addition of two bf16 numbers keeps 8 bits: the same step on more ranks gives another gradient, and the curve
// drifts from the second step on, without a sign. Whoever reads the curve cannot tell it from a bug, so this is no
// lint.
void CheckReduceDtype(const Located<std::string>& dtype, Diagnostics& problems) {
  if (dtype.value != "bf16") return;
  problems.Error(DiagnosticKind::kGradientPrecision, dtype.where,
                 "gradients that are summed in bf16 lose what small steps add, on every rank more",
                 "use reduce_dtype: fp32, or leave it out");
}

void LintFrozenCrop(const ModuleRecipe& module, Diagnostics& problems) {
  const auto* model = std::get_if<RadioVitModel>(&module.model.model);
  if (model == nullptr || module.train_backbone.value != "frozen" || model->positions.value != "crop") return;
  const Location& where = model->positions.where.known() ? model->positions.where : module.train_backbone.where;
  problems
      .Warning(DiagnosticKind::kFrozenCrop, where,
               Cat("encoder ", module.name.value,
                   " is frozen: it resizes its positions as in evaluation, and `positions: crop` is without effect"),
               "use positions: interpolate: the crop is an augmentation for an encoder that learns")
      .notes.push_back({module.train_backbone.where, "the encoder is frozen here"});
}

// A language model has no projector: the key would be without effect.
void CheckProjection(const ModuleRecipe& module, Diagnostics& problems) {
  if (!std::holds_alternative<HybridLmModel>(module.model.model) || !module.train_projection.where.known()) return;
  problems.Error(
      DiagnosticKind::kConflictingKeys, module.train_projection.where,
      Cat("`train.projection` on module ", module.name.value, ", whose model of kind hybrid_lm has no projector"),
      "freeze or train a language model with train.backbone");
}

void CheckStageKeys(const ModuleRecipe& module, Diagnostics& problems) {
  const bool first = module.first_stage_layers.has_value();
  if (!module.stage_layers || (!first && !module.last_stage_layers)) return;
  problems
      .Error(DiagnosticKind::kConflictingKeys, (first ? module.first_stage_layers : module.last_stage_layers)->where,
             Cat("`", first ? "first" : "last",
                 "_stage_layers` beside `stage_layers`, which says the layers of every stage"),
             "remove one of the two")
      .notes.push_back({module.stage_layers->where, "stage_layers is here"});
}

// Why a module has no layer of a word of `recompute` to run again; empty: it has.
std::string WhyNothing(const ModuleRecipe& module, const std::string& word) {
  const auto* language = std::get_if<HybridLmModel>(&module.model.model);
  const LayerKind* kind = FindLayerKind(word);  // none: full
  if (language == nullptr) {
    if (kind != nullptr && kind->of != LayerKind::Of::kEncoder) return "an encoder, whose layers are called block";
    return module.train_backbone.value == "frozen" ? "whose backbone is frozen and has no backward" : "";
  }
  if (kind == nullptr) return "";
  if (kind->of != LayerKind::Of::kLanguage) return "which is no encoder";
  return language->pattern.value.find(kind->letter) == std::string::npos
             ? Cat("whose pattern has no ", std::string(1, kind->letter))
             : "";
}

void CheckRecompute(const ModuleRecipe& module, Diagnostics& problems) {
  for (const Located<std::string>& word : module.recompute) {
    if (word.value == "none") {
      if (module.recompute.size() == 1) continue;
      problems.Error(DiagnosticKind::kConflictingKeys, word.where,
                     Cat("`recompute` of module ", module.name.value, " has none beside other words"),
                     "remove none, or the others");
    } else if (const std::string why = WhyNothing(module, word.value); !why.empty()) {
      problems.Error(DiagnosticKind::kNothingToRecompute, word.where,
                     Cat("recompute of ", word.value, " in module ", module.name.value, ", ", why),
                     Cat("remove ", word.value));
    }
  }
}

void CheckSomethingTrains(const Recipe& recipe, Diagnostics& problems) {
  const Located<std::string>* frozen = nullptr;
  for (const ModuleRecipe& module : recipe.modules) {
    const bool has_projector = std::holds_alternative<RadioVitModel>(module.model.model);
    if (module.train_backbone.value == "trained" || (has_projector && module.train_projection.value == "trained"))
      return;
    frozen = &module.train_backbone;
  }
  if (frozen == nullptr) return;
  problems.Error(DiagnosticKind::kNothingTrains, frozen->where,
                 "every part of every module is frozen: no parameter would be stepped",
                 "train a part, such as an encoder's projection: train: {backbone: frozen, projection: trained}");
}

void CheckModuleCount(const Recipe& recipe, Diagnostics& problems) {
  if (recipe.modules.size() <= kMostModules) return;
  problems.Error(DiagnosticKind::kTooLarge, recipe.modules[kMostModules].name.where,
                 Cat(recipe.modules.size(), " modules; a plan has at most ", kMostModules), "");
}

}  // namespace

void CheckSettingsMeant(const Recipe& recipe, Diagnostics& problems) {
  CheckModuleCount(recipe, problems);
  CheckReduceDtype(recipe.gradients.reduce_dtype, problems);
  CheckSomethingTrains(recipe, problems);
  for (const ModuleRecipe& module : recipe.modules) {
    CheckProjection(module, problems);
    CheckStageKeys(module, problems);
    CheckRecompute(module, problems);
    LintFrozenCrop(module, problems);
  }
}

}  // namespace planwright
