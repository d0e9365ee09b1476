#include "planner/plan/statement/model_statement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/plan/plan.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

constexpr Axis kStatedAxes[] = {Axis::kTp,       Axis::kCp, Axis::kDp,      Axis::kPp,
                                Axis::kExpertTp, Axis::kEp, Axis::kExpertDp};
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

double NumberOf(const Attribute& constant) {
  if (const int64_t* integer = std::get_if<int64_t>(&constant)) return static_cast<double>(*integer);
  const double* real = std::get_if<double>(&constant);
  return real ? *real : kNoNumber;
}

ModelStatement BuiltIn(const KindText& kind) {
  ParsedStatement parsed = ParseStatement(kind.file, kind.text);
  BuiltInText(parsed.problems);
  return std::move(parsed.statement);
}

}  // namespace

// The texts are parsed once in a process, at the first use.
std::span<const ModelStatement> BuiltInStatements() {
  static const std::vector<ModelStatement> statements = [] {
    std::vector<ModelStatement> all;
    for (const KindText& kind : BuiltInKinds()) all.push_back(BuiltIn(kind));
    return all;
  }();
  return statements;
}

const ModelStatement* StatementOf(string_view kind) {
  for (const ModelStatement& statement : BuiltInStatements()) {
    if (statement.kind == kind) return &statement;
  }
  return nullptr;
}

string_view LayerWordOf(const Module& module, char letter) {
  const ModelStatement* statement = StatementOf(module.kind);
  const StatedLayer* layer = statement ? statement->FindLayer(letter) : nullptr;
  return layer ? string_view(layer->word) : string_view();
}

bool IsProjection(const Module& module, const Parameter& parameter) {
  const ModelStatement& statement = *StatementOf(module.kind);
  const auto has = [&](const StatedPiece& piece, const LayerPlace& place) {
    return std::any_of(piece.weights.begin(), piece.weights.end(), [&](const StatedWeight& weight) {
      if (!weight.projection) return false;
      const std::string name = absl::StrCat(absl::StrReplaceAll(weight.file_prefix, {{"{encoder}", ""}}),
                                            NameAt(place, piece.prefix), weight.name);
      return parameter.file_name == name || parameter.file_name.ends_with("." + name);
    });
  };
  if (has(statement.head, {})) return true;
  const char letter = statement.TapLetter();
  if (letter == 0) return false;  // layers of other kinds have no projection
  const StatedPiece& tap = statement.layers.at(letter);
  if (std::none_of(tap.weights.begin(), tap.weights.end(), [](const auto& weight) { return weight.projection; }))
    return false;
  const std::vector<LayerPlace> places = PlacesOf(statement, module.layers);
  for (size_t i = 0; i < places.size(); ++i) {
    if (module.layers[i].kind == letter && has(tap, places[i])) return true;
  }
  return false;
}

const StatedKey* ModelStatement::FindKey(string_view name) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const StatedKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

const StatedLayer* ModelStatement::FindLayer(char letter) const {
  const auto found = std::find_if(layer_kinds.begin(), layer_kinds.end(),
                                  [&](const StatedLayer& layer) { return layer.letter == letter; });
  return found == layer_kinds.end() ? nullptr : &*found;
}

const StatedLayer* ModelStatement::FindLayer(string_view word) const {
  const auto found = std::find_if(layer_kinds.begin(), layer_kinds.end(),
                                  [&](const StatedLayer& layer) { return layer.word == word; });
  return found == layer_kinds.end() ? nullptr : &*found;
}

const StatedCarry* ModelStatement::FindCarry(string_view name) const {
  const auto found =
      std::find_if(carries.begin(), carries.end(), [&](const StatedCarry& carry) { return carry.name == name; });
  return found == carries.end() ? nullptr : &*found;
}

char ModelStatement::TapLetter() const {
  const auto is_carry = [&](const string& value) { return FindCarry(value) != nullptr; };
  for (const auto& [letter, piece] : layers) {
    if (std::any_of(piece.inputs.begin(), piece.inputs.end(), is_carry) ||
        std::any_of(piece.outputs.begin(), piece.outputs.end(), is_carry))
      return letter;
  }
  return 0;
}

const StatedKey* ModelStatement::SectionOf(char letter) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const StatedKey& key) {
    return key.form == StatedKey::Form::kSection && key.of == letter;
  });
  return found == keys.end() ? nullptr : &*found;
}

string PlainSlot(string_view slot) { return string(slot.substr(0, slot.size() - (slot.ends_with('?') ? 1 : 0))); }

const StatedSetting* StatedCompute::FindSetting(string_view attribute) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const StatedSetting& setting) { return setting.attribute == attribute; });
  return found == settings.end() ? nullptr : &*found;
}

double ModelStatement::NumberWithout(string_view constant, const Attributes& others) const {
  const auto number_of = [&](string_view name) {
    const auto found = others.find(name);
    return found == others.end() ? kNoNumber : NumberOf(found->second);
  };
  for (const StatedConstant& stated : constants) {
    if (stated.name == constant && stated.otherwise) return stated.otherwise->Evaluate(number_of);
  }
  return kNoNumber;
}

bool ModelStatement::HasExperts(char letter) const {
  const auto piece = layers.find(letter);
  return piece != layers.end() &&
         std::any_of(piece->second.weights.begin(), piece->second.weights.end(),
                     [](const StatedWeight& weight) { return weight.form == StatedWeight::Form::kExperts; });
}

std::vector<LayerPlace> PlacesOf(const ModelStatement& statement, const std::vector<LayerSummary>& layers) {
  const std::vector<StatedLayer>& kinds = statement.layer_kinds;
  const bool any_opens = std::any_of(kinds.begin(), kinds.end(), [](const StatedLayer& kind) { return kind.opens; });
  std::vector<LayerPlace> places;
  std::map<char, int64_t> taps;
  for (const LayerSummary& layer : layers) {
    const StatedLayer* kind = statement.FindLayer(layer.kind);
    LayerPlace place = {.layer = static_cast<int64_t>(places.size()), .tap = taps[layer.kind]++};
    if (!places.empty()) place.block = places.back().block + (!any_opens || (kind && kind->opens) ? 1 : 0);
    places.push_back(place);
  }
  return places;
}

string NameAt(const LayerPlace& place, string_view name) {
  return absl::StrReplaceAll({name.data(), name.size()}, {{"{layer}", absl::StrCat(place.layer)},
                                                          {"{block}", absl::StrCat(place.block)},
                                                          {"{tap}", absl::StrCat(place.tap)}});
}

ModelNumbers::ModelNumbers(const Budget& budget, const Module& module, const ModelStatement& statement)
    : statement_(&statement) {
  for (const StatedConstant& constant : statement.constants) {
    if (constant.otherwise) numbers_[constant.name] = statement.NumberWithout(constant.name, module.constants);
  }
  for (const auto& [name, value] : module.constants) {
    if (const double number = NumberOf(value); !std::isnan(number)) numbers_[name] = number;
  }
  for (Axis axis : kStatedAxes) numbers_[string(AxisName(axis))] = module.grid.size(axis);
  numbers_["trains_backbone"] = module.trains_backbone ? 1 : 0;
  numbers_["gathers_tokens"] = module.gathers_tokens() ? 1 : 0;
  numbers_["layers"] = static_cast<double>(module.layers.size());
  const char letter = statement.TapLetter();
  numbers_["taps"] =
      static_cast<double>(std::count_if(module.layers.begin(), module.layers.end(),
                                        [&](const LayerSummary& layer) { return letter && layer.kind == letter; }));
  numbers_["tap"] = 0;
  numbers_["sequence"] = static_cast<double>(budget.sequence_length);
  numbers_["samples"] = static_cast<double>(budget.micro_samples);
  AddLets();
}

ModelNumbers ModelNumbers::OnOneRank(const std::map<string, double>& data) const {
  ModelNumbers numbers = *this;
  for (Axis axis : kStatedAxes) numbers.numbers_[string(AxisName(axis))] = 1;
  for (const auto& [name, size] : data) numbers.numbers_[name] = size;
  numbers.AddLets();
  for (const StatedNumber& size : statement_->sizes) numbers.numbers_[size.name] = numbers.Of(size.formula);
  return numbers;
}

ModelNumbers ModelNumbers::AtTap(int64_t tap) const {
  ModelNumbers numbers = *this;
  numbers.numbers_["tap"] = static_cast<double>(tap);
  return numbers;
}

ModelNumbers ModelNumbers::Counting(int64_t count) const {
  ModelNumbers numbers = *this;
  numbers.numbers_["count"] = static_cast<double>(count);
  return numbers;
}

int64_t ModelNumbers::TapsBefore(const StatedPiece& piece) const {
  if (&piece == &statement_->embed) return 0;
  return static_cast<int64_t>((*this)(&piece == &statement_->head ? "taps" : "tap"));
}

int64_t ModelNumbers::TapsBehind(const StatedPiece& piece) const {
  const bool end = &piece == &statement_->embed || &piece == &statement_->head;
  return TapsBefore(piece) + (end ? 0 : 1);
}

// In the order of the statement, since a formula may use earlier names.
void ModelNumbers::AddLets() {
  for (const StatedNumber& let : statement_->lets) numbers_[let.name] = Of(let.formula);
}

double ModelNumbers::operator()(string_view name) const {
  // Expression hands over a call such as sqrt(hidden) as one name.
  constexpr string_view kRoot = "sqrt(";
  if (name.starts_with(kRoot)) return std::sqrt((*this)(name.substr(kRoot.size(), name.size() - kRoot.size() - 1)));
  const auto it = numbers_.find(name);
  return it == numbers_.end() ? kNoNumber : it->second;
}

std::vector<string> ModelNumbers::SlotsOf(const StatedPiece& piece, const StatedCompute& compute) const {
  std::vector<string> slots;
  for (const string& slot : compute.slots) {
    string name = PlainSlot(slot);
    if (name == slot || !WeightsOf(piece, name).empty()) slots.push_back(std::move(name));
  }
  return slots;
}

int64_t ModelNumbers::SizeOf(const Expression& formula) const {
  const double value = Of(formula);
  const bool fits = value >= 0 && value <= static_cast<double>(kLargestNumber);  // false for NaN
  return fits ? static_cast<int64_t>(value) : -1;
}

std::vector<const StatedWeight*> ModelNumbers::WeightsOf(const StatedPiece& piece, string_view slot) const {
  std::vector<const StatedWeight*> weights;
  for (const StatedWeight& weight : piece.weights) {
    if (weight.slot == slot && Hold(weight.when)) weights.push_back(&weight);
  }
  if (!weights.empty() || &piece == &statement_->embed) return weights;
  for (const StatedShare& share : piece.shared) {
    if (share.slot == slot && Hold(share.when)) return WeightsOf(statement_->embed, share.of);
  }
  return weights;
}

std::vector<int64_t> ModelNumbers::SizesOf(const std::vector<Expression>& formulas) const {
  std::vector<int64_t> sizes;
  for (const Expression& formula : formulas) sizes.push_back(SizeOf(formula));
  return sizes;
}

}  // namespace planwright
