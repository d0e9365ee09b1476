#include "planner/verify/v11_what_follows/piece_graph.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/limits.h"

namespace planwright {

using std::string;

namespace {

// What the compute reads for a module of these numbers. "bias?" is read if the module has a weight there.
std::vector<string> SlotsThere(const StatedPiece& piece, const StatedCompute& stated, const ModelNumbers& numbers) {
  std::set<string> there;
  for (const StatedWeight& weight : piece.weights) {
    if (numbers.Hold(weight.when)) there.insert(weight.slot + "?");
  }
  for (const StatedShare& share : piece.shared) {
    if (numbers.Hold(share.when)) there.insert(share.slot + "?");
  }
  std::vector<string> slots;
  for (const string& slot : stated.slots) {
    if (slot.back() != '?') {
      slots.push_back(slot);
    } else if (there.contains(slot)) {
      slots.push_back(slot.substr(0, slot.size() - 1));
    }
  }
  return slots;
}

}  // namespace

PieceGraph::PieceGraph(const Plan& plan, const Module& module, const ModelNumbers& numbers, const StatedPiece& piece,
                       bool evaluates)
    : plan_(plan), module_(module) {
  for (const Bridge& bridge : plan.bridges) {
    if (bridge.to == module.name) bridges_.push_back(&bridge);
  }
  // Inputs get the first numbers, then the outputs of each compute in order.
  AddEnds(piece.inputs, numbers, numbers.TapsBefore(piece), true);
  for (const StatedCompute& stated : piece.computes) {
    if (!numbers.Hold(stated.when) || (evaluates && OpClassOf(stated.kind) == OpClass::kState)) continue;
    for (size_t i = 0; i < (stated.each ? bridges_.size() : 1); ++i) Add(piece, stated, numbers, i);
  }
  AddEnds(piece.outputs, numbers, numbers.TapsBehind(piece), false);
  if (evaluates || plan.sums_by_source()) {
    for (const Compute& compute : computes_) {
      if (compute.kind == OpKind::kTokenLoss) outputs_.push_back(compute.outputs.front());
    }
  }
  if (!piece.counts.empty() && names_.contains(piece.counts)) counts_ = names_[piece.counts];
  if (evaluates) LeaveOutUnread();
}

// A carry without features is not there.
void PieceGraph::AddEnds(const std::vector<string>& names, const ModelNumbers& numbers, int64_t taps, bool are_inputs) {
  const ModelNumbers here = numbers.Counting(taps);
  for (const string& name : names) {
    const StatedCarry* carry = numbers.statement().FindCarry(name);
    const Expression* features = carry ? std::get_if<Expression>(&carry->type.sizes.back()) : nullptr;
    if (features && here.Of(*features) == 0) continue;
    for (const string& one : Expanded(name)) {
      (are_inputs ? inputs_ : outputs_).push_back(are_inputs ? Define(one) : names_[one]);
      (are_inputs ? carried_inputs_ : carried_outputs_).push_back(carry ? one : "");
    }
  }
}

bool PieceGraph::Takes(const string& carry) const {
  return std::find(carried_inputs_.begin(), carried_inputs_.end(), carry) != carried_inputs_.end();
}

bool PieceGraph::Gives(const string& carry) const {
  return std::find(carried_outputs_.begin(), carried_outputs_.end(), carry) != carried_outputs_.end();
}

// What computes only for a sum that is not there, such as the squares of what crosses a bridge.
void PieceGraph::LeaveOutUnread() {
  std::set<int> read(outputs_.begin(), outputs_.end());
  read.insert(counts_);
  std::vector<Compute> kept;
  for (auto compute = computes_.rbegin(); compute != computes_.rend(); ++compute) {
    const std::vector<int>& made = compute->outputs;
    if (std::none_of(made.begin(), made.end(), [&](int value) { return read.contains(value); })) continue;
    read.insert(compute->inputs.begin(), compute->inputs.end());
    kept.push_back(std::move(*compute));
  }
  computes_.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

// The names that a stated name stands for: "rows*" one for each encoder; "document_ends?" one or none.
std::vector<string> PieceGraph::Expanded(const string& name) const {
  if (name.back() == '?') return plan_.data.packed_documents ? std::vector<string>{name} : std::vector<string>{};
  if (name.back() != '*') return {name};
  std::vector<string> all;
  for (size_t i = 0; i < bridges_.size(); ++i) all.push_back(absl::StrCat(name, i));
  return all;
}

// The value of an attribute: of a formula or a constant, of the token of an encoder's images ("token*"), or the text
// itself, in which {module} stands for the name of the module.
Attribute PieceGraph::Setting(const AttributeSpec& spec, const StatedSetting& setting, const ModelNumbers& numbers,
                              size_t encoder) const {
  if (setting.text == "token*") return bridges_[encoder]->token;
  if (spec.type == AttributeType::kText) return absl::StrReplaceAll(setting.text, {{"{module}", module_.name}});
  const double number = setting.formula ? setting.formula->Evaluate(numbers) : numbers(setting.text);
  // What is no whole number is no integer, and equals none.
  const bool whole = std::abs(number) <= static_cast<double>(kLargestNumber) && number == std::trunc(number);
  if (spec.type == AttributeType::kInteger && whole) return static_cast<int64_t>(number);
  return number;
}

void PieceGraph::Add(const StatedPiece& piece, const StatedCompute& stated, const ModelNumbers& numbers,
                     size_t encoder) {
  Compute& compute = computes_.emplace_back();
  compute.kind = stated.kind;
  compute.slots = SlotsThere(piece, stated, numbers);
  compute.reads = absl::StrJoin(stated.inputs, ", ");
  for (const string& name : stated.inputs) {
    // Inside `each`, "rows*" is the value of this encoder; elsewhere it is the values of all encoders.
    const bool of_each = stated.each && name.back() == '*';
    for (const string& one : of_each ? std::vector<string>{absl::StrCat(name, encoder)} : Expanded(name))
      compute.inputs.push_back(names_.at(one));
  }
  for (const StatedSetting& setting : stated.settings) {
    const AttributeSpec* spec = InfoOf(stated.kind).FindAttribute(setting.attribute);
    if (!spec) continue;  // of a damaged statement: V4 refuses what a kind does not have
    const Attribute value = Setting(*spec, setting, numbers, encoder);
    const bool zero = value == Attribute(int64_t{0}) || value == Attribute(0.0);
    if (spec->source != AttributeSource::kStated || !zero) compute.settings.emplace_back(setting.attribute, value);
  }
  for (const string& name : stated.outputs)
    compute.outputs.push_back(Define(name.back() == '*' ? absl::StrCat(name, encoder) : name));
}

}  // namespace planwright
