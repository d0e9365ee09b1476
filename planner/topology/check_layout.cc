#include "planner/topology/check_layout.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/model/language_layer.h"
#include "planner/model/layer_pattern.h"
#include "planner/model/size_checks.h"
#include "planner/model/stage_split.h"
#include "planner/plan/layer_kinds.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

// Half of what a plan can count: the products below leave out norms, biases and positions.
constexpr auto kMostParameters = static_cast<double>(kMostElements / 2);

// The layer kinds that can be planned, for a message: "M (mamba), * (attention) and E (moe)".
std::string BuiltLayers() {
  std::vector<std::string> layers;
  for (const LayerKind& kind : LayerKinds()) {
    if (kind.of == LayerKind::Of::kLanguage)
      layers.push_back(absl::StrCat(std::string(1, kind.letter), " (", std::string(kind.word), ")"));
  }
  const std::string last = std::move(layers.back());
  layers.pop_back();
  return absl::StrCat(absl::StrJoin(layers, ", "), " and ", last);
}

// The pattern's grammar knows more layer kinds than the planner has blocks for. Those are refused by name.
bool CheckPatternBuilt(const HybridLmModel& model, const LayerPattern& pattern, Diagnostics& diagnostics) {
  std::vector<std::string> unbuilt;
  for (const LayerKind& kind : LayerKinds()) {
    if (kind.of == LayerKind::Of::kUnbuilt && pattern.count(kind.letter) > 0) {
      unbuilt.push_back(absl::StrCat(std::string(1, kind.letter), " (", std::string(kind.word), ")"));
    }
  }
  if (pattern.mtp_depths > 0) unbuilt.push_back("/ (multi-token prediction)");
  if (unbuilt.empty()) return true;
  diagnostics.Error(DiagnosticKind::kNotBuiltYet, model.pattern.where,
                    absl::StrCat("layers not built yet: ", absl::StrJoin(unbuilt, ", ")),
                    absl::StrCat("use ", BuiltLayers()));
  return false;
}

// Layer kinds of the pattern that can be planned.
std::vector<const LayerKind*> KindsOf(const LayerPattern& pattern) {
  std::vector<const LayerKind*> kinds;
  for (const LayerKind& kind : LayerKinds()) {
    if (kind.of == LayerKind::Of::kLanguage && pattern.has(kind.letter)) kinds.push_back(&kind);
  }
  return kinds;
}

// Those kinds of the pattern whose section the model has. A missing section is reported by itself.
std::vector<const LayerKind*> GivenKindsOf(const HybridLmModel& model, const LayerPattern& pattern) {
  std::vector<const LayerKind*> kinds = KindsOf(pattern);
  std::erase_if(kinds, [&](const LayerKind* kind) { return !model.has(kind->word); });
  return kinds;
}

void CheckLanguageSize(const HybridLmModel& model, const LayerPattern& pattern, SizeChecks& check) {
  double parameters = 2 * Product({*model.vocabulary, *model.hidden});
  for (const LayerKind* kind : GivenKindsOf(model, pattern)) {
    parameters += static_cast<double>(pattern.count(kind->letter)) * LanguageLayerOf(kind->letter).RoughSize(model);
  }
  check.Within("parameters", parameters, model.hidden, kMostParameters);
}

void CheckEncoderSize(const RadioVitModel& model, SizeChecks& check) {
  const int64_t hidden = *model.hidden, side = *model.max_image / std::max<int64_t>(*model.patch, 1);
  const double layer = 4 * Product({hidden, hidden}) + 2 * Product({hidden, *model.ffn});
  const double ends = Product({hidden, *model.patch, *model.patch, 3}) + Product({hidden, side, side}) +
                      Product({hidden, *model.pixel_shuffle, *model.pixel_shuffle, *model.projector_hidden});
  check.Within("parameters", static_cast<double>(*model.layers) * layer + ends, model.hidden, kMostParameters);
}

bool CheckLanguageShape(const ModuleRecipe& module, const HybridLmModel& model, Diagnostics& diagnostics) {
  const std::optional<LayerPattern> pattern = ParseLayerPattern(model.pattern, diagnostics);
  if (!pattern) return false;
  SizeChecks check(module, diagnostics);
  for (const LayerKind* kind : KindsOf(*pattern)) {
    if (!model.has(kind->word)) check.MissingSection(model, kind->letter);
  }
  if (pattern->layers.empty())
    check.Shape({0, model.pattern.where}, "the pattern has no layer", "write the layers, such as ME*E");
  for (const LayerKind* kind : GivenKindsOf(model, *pattern)) LanguageLayerOf(kind->letter).CheckShape(model, check);
  CheckLanguageSize(model, *pattern, check);

  bool fine = CheckPatternBuilt(model, *pattern, diagnostics) && check.fine();
  // Also checks that the split into pipeline stages places every layer.
  return StagesOfLayers(module, diagnostics).has_value() && fine;
}

bool CheckEncoderShape(const ModuleRecipe& module, const RadioVitModel& model, Diagnostics& diagnostics) {
  SizeChecks check(module, diagnostics);
  check.Multiple("hidden", model.hidden, "heads", model.heads);
  check.Multiple("max_image", model.max_image, "patch", model.patch);
  if (*model.patch >= 1) {
    // Pixel shuffle folds squares of patches into one token: a side must hold whole squares.
    const Located<int64_t> side(*model.max_image / *model.patch, model.max_image.where);
    check.Multiple("the side of the largest image in patches", side, "pixel_shuffle", model.pixel_shuffle);
  }
  CheckEncoderSize(model, check);
  return StagesOfLayers(module, diagnostics).has_value() && check.fine();
}

void CheckLanguageLayout(const Recipe& recipe, const ModuleRecipe& m, const HybridLmModel& model, SizeChecks& check) {
  Diagnostics ignored;  // a broken pattern was reported with the shape
  const std::optional<LayerPattern> pattern = ParseLayerPattern(model.pattern, ignored);
  if (!pattern) return;
  for (const LayerKind* kind : GivenKindsOf(model, *pattern))
    LanguageLayerOf(kind->letter).CheckLayout(model, m, check);
  check.Cut("vocabulary", model.vocabulary, "tp", m.tp);
  // Between layers each tp rank has a part of the sequence. Over cp the sequence is cut in 2 x cp chunks, of which each
  // rank has two (docs/layouts/sequence.md#context-parallelism).
  if (*m.cp > 1) {
    check.Cut("sequence_length", recipe.batch.sequence_length, "2 x cp x tp",
              Located<int64_t>(2 * *m.cp * *m.tp, m.cp.where));
  } else {
    check.Cut("sequence_length", recipe.batch.sequence_length, "tp", m.tp);
  }
}

void CheckEncoderLayout(const ModuleRecipe& m, const RadioVitModel& model, SizeChecks& check) {
  check.Cut("heads", model.heads, "tp", m.tp);
  check.Cut("ffn", model.ffn, "tp", m.tp);
  check.Cut("hidden", model.hidden, "tp", m.tp);
  check.Cut("projector.hidden", model.projector_hidden, "tp", m.tp);
}

}  // namespace

bool CheckModelShape(const ModuleRecipe& module, Diagnostics& diagnostics) {
  if (const auto* language = std::get_if<HybridLmModel>(&module.model.model))
    return CheckLanguageShape(module, *language, diagnostics);
  return CheckEncoderShape(module, std::get<RadioVitModel>(module.model.model), diagnostics);
}

bool CheckLayout(const Recipe& recipe, const ModuleRecipe& module, Diagnostics& diagnostics) {
  SizeChecks check(module, diagnostics);
  if (const auto* language = std::get_if<HybridLmModel>(&module.model.model)) {
    CheckLanguageLayout(recipe, module, *language, check);
  } else {
    CheckEncoderLayout(module, std::get<RadioVitModel>(module.model.model), check);
  }
  return check.fine();
}

}  // namespace planwright
