#include "planner/compile/topology/check_layout.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/compile/model/expand_model.h"
#include "planner/compile/model/layer_pattern.h"
#include "planner/compile/model/size_checks.h"
#include "planner/compile/model/stage_split.h"
#include "planner/compile/topology/check_needs.h"
#include "planner/plan/layer_kinds.h"

namespace planwright {
namespace {

// Half of what a plan can count: the projector of an encoder is not counted whole, since its last width is another
// model's.
constexpr auto kMostParameters = static_cast<double>(kMostElements / 2);

// The layer kinds that can be planned, for a message: "M (mamba), * (attention), E (moe) and - (mlp)".
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
bool CheckPatternBuilt(const Location& where, const LayerPattern& pattern, Diagnostics& diagnostics) {
  std::vector<std::string> unbuilt;
  for (const LayerKind& kind : LayerKinds()) {
    if (kind.of == LayerKind::Of::kUnbuilt && pattern.count(kind.letter) > 0) {
      unbuilt.push_back(absl::StrCat(std::string(1, kind.letter), " (", std::string(kind.word), ")"));
    }
  }
  if (pattern.mtp_depths > 0) unbuilt.push_back("/ (multi-token prediction)");
  if (unbuilt.empty()) return true;
  diagnostics.Error(DiagnosticKind::kNotBuiltYet, where,
                    absl::StrCat("layers not built yet: ", absl::StrJoin(unbuilt, ", ")),
                    absl::StrCat("use ", BuiltLayers()));
  return false;
}

// Layer kinds of the pattern that can be planned.
std::vector<const LayerKind*> KindsOf(const LayerPattern& pattern) {
  std::vector<const LayerKind*> kinds;
  for (const LayerKind& kind : LayerKinds()) {
    if (kind.of != LayerKind::Of::kUnbuilt && pattern.has(kind.letter)) kinds.push_back(&kind);
  }
  return kinds;
}

// Those kinds of the pattern whose sizes the recipe gives. A missing section is reported by itself.
std::vector<const LayerKind*> GivenKindsOf(const ModelRecipe& model, const LayerPattern& pattern) {
  std::vector<const LayerKind*> kinds = KindsOf(pattern);
  std::erase_if(kinds, [&](const LayerKind* kind) { return !GivesLayer(model, kind->letter); });
  return kinds;
}

// The pieces of a model that can be checked, in the order in which problems are listed. `layers`: those kinds whose
// sizes the recipe gives.
std::vector<const StatedPiece*> PiecesOf(const ModelStatement& statement, const std::vector<const LayerKind*>& layers) {
  std::vector<const StatedPiece*> pieces = {&statement.embed};
  for (const LayerKind* kind : layers) pieces.push_back(&statement.layers.at(kind->letter));
  pieces.push_back(&statement.head);
  return pieces;
}

// In doubles, which do not overflow: sizes that do not fit may be absurd.
double ElementsOf(const StatedPiece& piece, const ModelNumbers& numbers) {
  double elements = 0;
  for (const StatedWeight& weight : piece.weights) {
    if (!numbers.Hold(weight.when)) continue;
    double product = weight.form == StatedWeight::Form::kExperts ? numbers("moe.experts") : 1;
    for (const Expression& size : weight.shape) product *= numbers.Of(size);
    elements += product;
  }
  return elements;
}

// `layers`: the letters of those layers whose sizes the recipe gives.
void CheckSize(const ModuleRecipe& recipe, const LocatedNumbers& given, const std::string& layers, SizeChecks& check) {
  const ModelStatement& statement = StatementOfModel(recipe.model);
  Module module;
  module.constants = ConstantsOf(recipe.model, given, {});
  const ModelNumbers numbers({}, module, statement);
  double elements = ElementsOf(statement.embed, numbers) + ElementsOf(statement.head, numbers);
  for (char letter : layers) elements += ElementsOf(statement.layers.at(letter), numbers);
  for (const auto& [name, number] : given) {
    if (!AllKnown(number)) return;
  }
  check.Within("parameters", elements, SizeOf(given, "hidden"), kMostParameters);
}

}  // namespace

bool CheckModelShape(const ModuleRecipe& module, Diagnostics& diagnostics) {
  const ModelRecipe& model = module.model;
  if (!AllKnown(model.kind, PatternOf(model))) return false;
  const std::optional<LayerPattern> pattern = PatternOfLayers(model, diagnostics);
  if (!pattern) return false;
  const Location where = PatternOf(model).where;
  SizeChecks check(module, diagnostics);
  for (const LayerKind* kind : KindsOf(*pattern)) {
    if (!GivesLayer(model, kind->letter)) check.MissingSection(where, kind->letter);
  }
  if (pattern->layers.empty()) check.Shape({0, where}, "the pattern has no layer", "write the layers, such as ME*E");
  const std::vector<const LayerKind*> given = GivenKindsOf(model, *pattern);
  const LocatedNumbers numbers = NumbersOf(model);
  NeedChecks needs(module, numbers, check);
  for (const StatedPiece* piece : PiecesOf(StatementOfModel(model), given)) needs.CheckShape(*piece);
  std::string layers;
  for (const LayerKind* kind : given) layers.append(static_cast<size_t>(pattern->count(kind->letter)), kind->letter);
  CheckSize(module, numbers, layers, check);

  const bool fine = CheckPatternBuilt(where, *pattern, diagnostics) && check.fine();
  // Also checks that the split into pipeline stages places every layer.
  if (!AllKnown(module.pp, module.stage_layers, module.first_stage_layers, module.last_stage_layers)) return false;
  return StagesOfLayers(module, diagnostics).has_value() && fine;
}

bool CheckLayout(const Recipe& recipe, const ModuleRecipe& module, Diagnostics& diagnostics) {
  if (!AllKnown(module.model.kind, PatternOf(module.model))) return false;
  Diagnostics ignored;  // a broken pattern was reported with the shape
  const std::optional<LayerPattern> pattern = PatternOfLayers(module.model, ignored);
  if (!pattern) return true;
  SizeChecks check(module, diagnostics);
  const LocatedNumbers numbers = NumbersOf(module.model);
  NeedChecks needs(module, numbers, check);
  for (const StatedPiece* piece : PiecesOf(StatementOfModel(module.model), GivenKindsOf(module.model, *pattern)))
    needs.CheckLayout(*piece);
  if (!CarriesLoss(module.model) || !AllKnown(module.cp, module.tp, recipe.batch.sequence_length)) return check.fine();
  // Between layers each tp rank has a part of the sequence. Over cp the sequence is cut in 2 x cp chunks, of which each
  // rank has two (docs/layouts/sequence.md#context-parallelism).
  if (*module.cp > 1) {
    check.Cut("sequence_length", recipe.batch.sequence_length, "2 x cp x tp",
              Located<int64_t>(2 * *module.cp * *module.tp, module.cp.where));
  } else {
    check.Cut("sequence_length", recipe.batch.sequence_length, "tp", module.tp);
  }
  return check.fine();
}

}  // namespace planwright
