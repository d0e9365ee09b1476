#include "planner/compile/topology/check_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"
#include "planner/compile/model/block_names.h"
#include "planner/compile/model/expand_model.h"
#include "planner/compile/model/layer_pattern.h"
#include "planner/compile/model/size_checks.h"
#include "planner/compile/model/stage_split.h"

namespace planwright {
namespace {

// Half of what a plan can count: the projector of an encoder is not counted whole, since its last width is another
// model's.
constexpr auto kMostParameters = static_cast<double>(kMostElements / 2);

std::string WithLetter(const StatedLayer& layer) {
  return absl::StrCat(std::string(1, layer.letter), " (", layer.word.empty() ? layer.title : layer.word, ")");
}

// The layer kinds that can be planned, for a message: "M (mamba), * (attention), E (moe) and - (mlp)".
std::string BuiltLayers(const ModelStatement& statement) {
  std::vector<std::string> layers;
  for (const StatedLayer& layer : statement.layer_kinds) layers.push_back(WithLetter(layer));
  const std::string last = std::move(layers.back());
  layers.pop_back();
  return layers.empty() ? last : absl::StrCat(absl::StrJoin(layers, ", "), " and ", last);
}

// The pattern's grammar knows more layer kinds than the planner has blocks for. Those are refused by name.
bool CheckPatternBuilt(const Location& where, const LayerPattern& pattern, const ModelStatement& statement,
                       Diagnostics& diagnostics) {
  std::vector<std::string> unbuilt;
  for (const StatedLayer& layer : statement.unbuilt) {
    if (pattern.count(layer.letter) > 0) unbuilt.push_back(WithLetter(layer));
  }
  if (pattern.mtp_depths > 0) unbuilt.push_back("/ (multi-token prediction)");
  if (unbuilt.empty()) return true;
  diagnostics.Error(DiagnosticKind::kNotBuiltYet, where,
                    absl::StrCat("layers not built yet: ", absl::StrJoin(unbuilt, ", ")),
                    absl::StrCat("use ", BuiltLayers(statement)));
  return false;
}

// Layer kinds of the pattern that can be planned.
std::vector<const StatedLayer*> KindsOf(const ModelRecipe& model, const LayerPattern& pattern) {
  std::vector<const StatedLayer*> kinds;
  for (const StatedLayer& layer : StatementOfModel(model).layer_kinds) {
    if (pattern.has(layer.letter)) kinds.push_back(&layer);
  }
  return kinds;
}

// Those kinds of the pattern whose sizes the recipe gives. A missing section is reported by itself.
std::vector<const StatedLayer*> GivenKindsOf(const ModelRecipe& model, const LayerPattern& pattern) {
  std::vector<const StatedLayer*> kinds = KindsOf(model, pattern);
  std::erase_if(kinds, [&](const StatedLayer* kind) { return !GivesLayer(model, kind->letter); });
  return kinds;
}

// The pieces of a model that can be checked, in the order in which problems are listed. `layers`: those kinds whose
// sizes the recipe gives.
std::vector<const StatedPiece*> PiecesOf(const ModelStatement& statement,
                                         const std::vector<const StatedLayer*>& layers) {
  std::vector<const StatedPiece*> pieces = {&statement.embed};
  for (const StatedLayer* kind : layers) pieces.push_back(&statement.layers.at(kind->letter));
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

// `layers`: the letters of those layers whose sizes the recipe gives. `numbers`: those that it gives.
void CheckSize(const ModelStatement& statement, const ModelNumbers& numbers, const LocatedNumbers& given,
               const std::string& layers, SizeChecks& check) {
  double elements = ElementsOf(statement.embed, numbers) + ElementsOf(statement.head, numbers);
  for (char letter : layers) elements += ElementsOf(statement.layers.at(letter), numbers);
  for (const auto& [name, number] : given) {
    if (!AllKnown(number)) return;
  }
  check.Within("parameters", elements, SizeOf(given, "hidden"), kMostParameters);
}

// What the statement of a model needs of its sizes (lines `needs` of model_statement.h), checked on the numbers of a
// recipe, with the places that give them.
class NeedChecks {
 public:
  // `numbers`: of the module's model (NumbersOf). All must outlive it.
  NeedChecks(const ModuleRecipe& module, const LocatedNumbers& numbers, SizeChecks& check)
      : module_(module), check_(check), numbers_(numbers) {}

  // What holds on every layout (PW0505), and what the axes of the module must divide (PW0209).
  void CheckShape(const StatedPiece& piece);
  void CheckLayout(const StatedPiece& piece);

 private:
  double Of(const Expression& formula) const;
  bool AllKnownIn(const Expression& formula) const;
  Located<int64_t> LocatedAt(const Expression& formula, const std::string& constant) const;
  void CheckMultiple(const StatedNeed& need);
  void CheckAtMost(const StatedNeed& need);
  void CheckCut(const StatedNeed& need);
  void CheckAxis(const StatedNeed& need);
  // Whether the line holds for this model, as far as its numbers are known.
  bool Concerns(const StatedNeed& need) const { return !need.when || (AllKnownIn(*need.when) && Of(*need.when) != 0); }

  const ModuleRecipe& module_;
  SizeChecks& check_;
  const LocatedNumbers& numbers_;
};

using Relation = StatedNeed::Relation;

// "groups" of "mamba.groups"
std::string WithoutSection(const std::string& constant) { return constant.substr(constant.rfind('.') + 1); }

// "mamba heads x head_dim" of mamba.heads * mamba.head_dim
std::string ProductText(const Expression& product) {
  const std::string& first = product.names().front();
  std::string text = first.substr(0, first.rfind('.'));
  std::string_view times = " ";
  for (const std::string& name : product.names())
    absl::StrAppend(&text, std::string(std::exchange(times, " x ")), WithoutSection(name));
  return text;
}

const Located<int64_t>& SizeOf(Axis axis, const ModuleRecipe& module) {
  switch (axis) {
    case Axis::kTp: return module.tp;
    case Axis::kPp: return module.pp;
    case Axis::kCp: return module.cp;
    case Axis::kEp: return module.ep;
    case Axis::kExpertTp: return module.expert_tp;
    default: Bug("a statement needs that an axis divides a size, which cuts no size: " + std::string(AxisName(axis)));
  }
}

void NeedChecks::CheckShape(const StatedPiece& piece) {
  for (const StatedNeed& need : piece.needs) {
    if (!Concerns(need)) continue;
    if (need.relation == Relation::kMultiple) CheckMultiple(need);
    if (need.relation == Relation::kAtMost) CheckAtMost(need);
  }
}

void NeedChecks::CheckLayout(const StatedPiece& piece) {
  for (const StatedNeed& need : piece.needs) {
    if (need.axes.empty() || !Concerns(need)) continue;
    need.relation == Relation::kAxisAtMost ? CheckAxis(need) : CheckCut(need);
  }
}

double NeedChecks::Of(const Expression& formula) const {
  return formula.Evaluate([&](const std::string& name) {
    if (name == "most_tokens") return static_cast<double>(kMostTokens);
    if (name == "largest_dim") return static_cast<double>(kLargestDim);
    const auto number = numbers_.find(name);
    const int64_t* size = number == numbers_.end() ? nullptr : std::get_if<int64_t>(&*number->second);
    return size ? static_cast<double>(*size) : std::numeric_limits<double>::quiet_NaN();
  });
}

bool NeedChecks::AllKnownIn(const Expression& formula) const {
  return std::all_of(formula.names().begin(), formula.names().end(), [&](const std::string& name) {
    const auto number = numbers_.find(name);
    return number == numbers_.end() || AllKnown(number->second);
  });
}

// A size at the place of one of its constants. Rounded down, and the largest number where it is above all numbers.
Located<int64_t> NeedChecks::LocatedAt(const Expression& formula, const std::string& constant) const {
  const double value = Of(formula);
  const auto number = numbers_.find(constant);
  return {value < 9e18 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::max(),
          number == numbers_.end() ? Location() : number->second.where};
}

void NeedChecks::CheckMultiple(const StatedNeed& need) {
  if (!AllKnownIn(need.left) || !AllKnownIn(*need.right)) return;
  if (!std::isfinite(Of(need.left))) return;  // a size divided by one that is 0, which is reported by itself
  const std::string of = need.right->names().empty() ? "" : need.right->text();  // "": a number
  check_.Multiple(need.called.empty() ? need.left.text() : need.called, LocatedAt(need.left, need.left.names().front()),
                  WithoutSection(of), LocatedAt(*need.right, of));
}

void NeedChecks::CheckAtMost(const StatedNeed& need) {
  if (!AllKnownIn(need.left) || !AllKnownIn(*need.right)) return;
  if (std::isnan(Of(need.left))) return;  // of a constant that the recipe may leave out
  const std::string& most = need.right->text();
  if (numbers_.contains(most)) {
    check_.AtMost(need.left.text(), LocatedAt(need.left, need.left.names().front()), WithoutSection(most),
                  LocatedAt(*need.right, most));
  } else {
    check_.Within(ProductText(need.left), Of(need.left), LocatedAt(need.left, need.left.names().back()),
                  Of(*need.right));
  }
}

void NeedChecks::CheckAxis(const StatedNeed& need) {
  const Axis axis = need.axes.front();
  const Located<int64_t>& size = SizeOf(axis, module_);
  if (!AllKnownIn(*need.right) || !AllKnown(size)) return;
  LocatedNumbers because;
  for (const std::string& name : need.when ? need.when->names() : std::vector<std::string>()) {
    if (const auto number = numbers_.find(name); number != numbers_.end()) because.insert(*number);
  }
  check_.Axis(std::string(AxisName(axis)), size, static_cast<int64_t>(Of(*need.right)), because);
}

// The axes are named up to the last that cuts: with cp 1, "tp x cp" is "tp".
void NeedChecks::CheckCut(const StatedNeed& need) {
  if (!AllKnownIn(need.left)) return;
  std::string text, named;  // named: all axes so far
  Located<int64_t> parts = 1;
  int64_t product = 1;
  for (Axis axis : need.axes) {
    const Located<int64_t>& size = SizeOf(axis, module_);
    if (!AllKnown(size)) return;
    absl::StrAppend(&named, named.empty() ? "" : " x ", std::string(AxisName(axis)));
    product *= *size;
    if (!text.empty() && *size == 1) continue;
    text = named;
    parts = {product, size.where};
  }
  check_.Cut(need.left.text(), LocatedAt(need.left, need.left.text()), text, parts,
             need.relation == Relation::kDividesOrMultiple);
}

}  // namespace

std::optional<std::vector<int>> CheckModelShape(const ModuleRecipe& module, const LayerPattern& pattern,
                                                Diagnostics& diagnostics) {
  const ModelRecipe& model = module.model;
  const Location where = model.pattern.where;
  SizeChecks check(module, diagnostics);
  const ModelStatement& statement = StatementOfModel(model);
  for (const StatedLayer* kind : KindsOf(model, pattern)) {
    if (!GivesLayer(model, kind->letter)) check.MissingSection(where, *kind, statement.SectionOf(kind->letter)->name);
  }
  if (pattern.layers.empty()) {
    check.Shape({0, where}, "the pattern has no layer",
                absl::StrCat("write the layers", statement.example.empty() ? "" : ", such as ", statement.example));
  }
  const std::vector<const StatedLayer*> given = GivenKindsOf(model, pattern);
  const LocatedNumbers& numbers = model.numbers;
  NeedChecks needs(module, numbers, check);
  for (const StatedPiece* piece : PiecesOf(statement, given)) needs.CheckShape(*piece);
  std::string layers;
  for (const StatedLayer* kind : given) layers.append(static_cast<size_t>(pattern.count(kind->letter)), kind->letter);
  Module on_one_rank;
  on_one_rank.constants = ConstantsOf(model, numbers, {});
  const ModelNumbers model_numbers({}, on_one_rank, statement);
  CheckSize(statement, model_numbers, numbers, layers, check);

  const bool names = CheckBlockNames(model, pattern, model_numbers, diagnostics);
  const bool fine = CheckPatternBuilt(where, pattern, statement, diagnostics) && names && check.fine();
  // Also checks that the split into pipeline stages places every layer.
  if (!AllKnown(module.pp, module.stage_layers, module.first_stage_layers, module.last_stage_layers))
    return std::nullopt;
  std::optional<std::vector<int>> stages = StagesOfLayers(module, pattern, diagnostics);
  return fine ? std::move(stages) : std::nullopt;
}

bool CheckLayout(const Recipe& recipe, const ModuleRecipe& module, const LayerPattern& pattern,
                 Diagnostics& diagnostics) {
  SizeChecks check(module, diagnostics);
  const LocatedNumbers& numbers = module.model.numbers;
  NeedChecks needs(module, numbers, check);
  for (const StatedPiece* piece : PiecesOf(StatementOfModel(module.model), GivenKindsOf(module.model, pattern)))
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
