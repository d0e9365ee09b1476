#include "planner/compile/schedule/derive/forward.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/compile/schedule/derive/conversions.h"
#include "planner/compile/schedule/derive/dispatch.h"
#include "planner/compile/schedule/derive/forms.h"

namespace planwright {
namespace {

using std::string;
using State = AxisLayout::State;

bool IsZero(const Attribute& value) { return value == Attribute(int64_t{0}) || value == Attribute(0.0); }

class ForwardDeriver {
 public:
  ForwardDeriver(const PieceContext& context, const StatedPiece& stated)
      : context_(context), stated_(stated), conversions_(context, piece_), dispatch_(context, piece_, conversions_),
        forms_(context, piece_) {}

  DerivedPiece Derive(bool goes_over_bridge) {
    for (const string& name : stated_.inputs) AddInput(name);
    for (const StatedCompute& compute : stated_.computes) {
      if (!context_.numbers().Hold(compute.when)) continue;
      for (size_t i = 0; i < (compute.each ? context_.encoders().size() : 1); ++i) AddCompute(compute, i);
    }
    for (const string& name : stated_.outputs) {
      if (const StatedCarry* carry = context_.statement().FindCarry(name)) {
        GiveCarry(*carry);
        continue;
      }
      conversions_.StartReader();
      size_t& output = Known(name);
      output = conversions_.Bring(output, FormOfEnd(goes_over_bridge));
      piece_.outputs.push_back(output);
    }
    for (const StatedProbe& probe : stated_.probes) {
      if (context_.numbers().Hold(probe.when)) piece_.probes.emplace_back(Known(probe.value), probe.name);
    }
    return std::move(piece_);
  }

 private:
  // How many values have the name.
  size_t CountOf(const string& name) const { return name.ends_with('*') ? context_.encoders().size() : 1; }

  void TakeCarry(const StatedCarry& carry) {
    const int64_t before = context_.numbers().TapsBefore(stated_);
    for (size_t i = 0; i < CountOf(carry.name); ++i) {
      std::optional<ValueType> type = context_.TypeOf(carry, i, before);
      if (!type) continue;
      piece_.inputs.push_back(Define(NameOf(carry.name, i), *std::move(type)));
      values_[KeyOf(carry.name, i)] = piece_.inputs.back();
    }
  }

  // It leaves in the form that its line says.
  void GiveCarry(const StatedCarry& carry) {
    const int64_t behind = context_.numbers().TapsBehind(stated_);
    for (size_t i = 0; i < CountOf(carry.name); ++i) {
      const std::optional<ValueType> type = context_.TypeOf(carry, i, behind);
      if (!type) continue;
      WantedForm wanted;
      for (Axis axis : {Axis::kTp, Axis::kCp}) {
        if (context_.size(axis) == 1) continue;
        const auto along = type->layout.find(axis);
        wanted[axis] = along == type->layout.end() ? std::nullopt : std::optional<int>(along->second.dim);
      }
      conversions_.StartReader();
      size_t& output = Known(KeyOf(carry.name, i));
      output = conversions_.Bring(output, wanted);
      piece_.outputs.push_back(output);
      if (type->gradient) piece_.output_gradients[output] = *type->gradient;
    }
  }

  // One value, one for each encoder, or none.
  void AddInput(const string& name) {
    if (const StatedCarry* carry = context_.statement().FindCarry(name)) return TakeCarry(*carry);
    const string plain = name.ends_with('*') || name.ends_with('?') ? name.substr(0, name.size() - 1) : name;
    if (name.ends_with('?') && !context_.packed_documents()) return;
    if (!name.ends_with('*')) {
      const auto given = context_.statement().given.find(plain);
      const bool stream = given == context_.statement().given.end();
      StatedType type = stream ? context_.statement().stream : given->second;
      if (stream && context_.stream_is_idle()) type.learns = false;
      values_[name] = DefineInput(plain, type, 0);
      return;
    }
    for (size_t i = 0; i < context_.encoders().size(); ++i) {
      StatedType type = context_.statement().given.at(plain);
      type.learns = context_.encoders()[i].learns;
      values_[absl::StrCat(name, i)] = DefineInput(context_.encoders()[i].rows, type, i);
    }
  }

  size_t DefineInput(const string& name, const StatedType& type, size_t encoder) {
    piece_.inputs.push_back(Define(name, context_.TypeOf(type, encoder)));
    return piece_.inputs.back();
  }

  size_t Define(const string& name, ValueType type) {
    const size_t value = piece_.Add({.name = name, .stated = name, .type = std::move(type)});
    piece_.values[value].made = value;
    if (name == stated_.counts) piece_.counts = value;
    return value;
  }

  size_t& Known(const string& name) {
    const auto value = values_.find(name);
    Require(value != values_.end(), "a statement uses the value " + name + " before it is made");
    return value->second;
  }

  // Among `values_`: of "rows*", one for each encoder.
  static string KeyOf(const string& stated, size_t encoder) {
    return stated.ends_with('*') ? absl::StrCat(stated, encoder) : stated;
  }
  // In the block.
  string NameOf(const string& stated, size_t encoder) const {
    if (!stated.ends_with('*')) return stated;
    return absl::StrCat(context_.encoders()[encoder].prefix, stated.substr(0, stated.size() - 1));
  }

  void AddCompute(const StatedCompute& stated, size_t encoder) {
    DerivedCompute compute = {.kind = stated.kind, .slots = context_.numbers().SlotsOf(stated_, stated)};
    for (const string& name : stated.inputs) {
      if (name.ends_with('?') && !context_.packed_documents()) continue;
      compute.inputs.push_back(Known(KeyOf(name, encoder)));
    }
    for (const string& slot : compute.slots) compute.slots_on_rank.push_back(context_.SlotOf(stated_, slot));
    compute.attributes = context_.AttributesOf(stated.kind);
    const OpInfo& info = InfoOf(stated.kind);
    for (const StatedSetting& setting : stated.settings) {
      const AttributeSpec* spec = info.FindAttribute(setting.attribute);
      Require(spec != nullptr, absl::StrCat(string(info.name), " has no attribute ", setting.attribute));
      Attribute value = context_.SettingOf(*spec, setting, encoder);
      const bool absent = spec->source == AttributeSource::kStated && IsZero(value);
      if (!absent) compute.attributes[setting.attribute] = std::move(value);
    }
    if (info.op_class == OpClass::kState) return Accumulate(std::move(compute));
    conversions_.StartReader();
    SplitFirstInput(compute);
    dispatch_.BringOperands(compute);
    const std::map<Axis, CutIndex> cuts = CutsOf(compute);
    for (size_t i = 0; i < compute.inputs.size(); ++i) BringInput(compute, i, cuts);
    Emit(stated, compute, encoder);
  }

  // An addition to a sum of the step takes any form. Along axes over which the value is whole one rank adds it.
  void Accumulate(DerivedCompute compute) {
    string axes;
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      if (context_.size(axis) > 1 && !piece_.type(compute.inputs.front()).layout.contains(axis))
        absl::StrAppend(&axes, axes.empty() ? "" : ",", string(AxisName(axis)));
    }
    if (!axes.empty() && InfoOf(compute.kind).FindAttribute("once_over")) compute.attributes["once_over"] = axes;
    piece_.forward.push_back(
        {.kind = compute.kind, .inputs = compute.inputs, .attributes = std::move(compute.attributes)});
  }

  // With cp, attention takes the parts of its first input as inputs of their own, because ranks need some of them
  // whole.
  void SplitFirstInput(DerivedCompute& compute) {
    const OpSignature& plain = *InfoOf(compute.kind).signature;
    const OpSignature& signature = compute.signature();
    if (signature.inputs.size() <= plain.inputs.size()) return;
    const size_t parts = signature.inputs.size() - plain.inputs.size() + 1, whole = compute.inputs.front();
    const DimSizes sizes(context_, piece_, {.kind = compute.kind, .attributes = compute.attributes});
    const int last = static_cast<int>(piece_.type(whole).dims.size()) - 1;
    DerivedStep split = {.kind = OpKind::kSplit, .inputs = {whole}, .attributes = {{"dim", int64_t{last}}}};
    compute.inputs.erase(compute.inputs.begin());
    const auto names = stated_.parts.find(piece_.values[whole].stated);
    Require(names != stated_.parts.end() && names->second.size() == parts, "the statement names no such parts");
    for (size_t part = 0; part < parts; ++part) {
      ValueType type = piece_.type(whole);
      const OperandSignature last_dim = {.dims = {signature.inputs[part].dims.back()}};
      type.dims.back() = sizes.Of(last_dim).front();
      split.outputs.push_back(Define(names->second[part], std::move(type)));
    }
    compute.inputs.insert(compute.inputs.begin(), split.outputs.begin(), split.outputs.end());
    piece_.forward.push_back(std::move(split));
  }

  // What is cut over each axis of the lane, before any input is brought into another form.
  std::map<Axis, CutIndex> CutsOf(const DerivedCompute& compute) const {
    std::map<Axis, CutIndex> cuts;
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      if (context_.size(axis) > 1) cuts[axis] = forms_.CutOver(axis, compute);
    }
    return cuts;
  }

  // Whether a sum of terms is made of terms alone: then it is one, and is reduced as a whole.
  bool AddsTerms(const DerivedCompute& compute, Axis axis) const {
    for (size_t i = 0; i < compute.inputs.size(); ++i) {
      const Layout& layout = piece_.type(compute.inputs[i]).layout;
      const auto along = layout.find(axis);
      const bool term = along != layout.end() && along->second.state == State::kPartial;
      if (!term || !OperandAt(compute.signature().inputs, i)->linear) return false;
    }
    return compute.inputs.size() > 1;
  }

  // An input that has the cut index is cut along it, another one is whole. A term that is never reduced stays one, and
  // so do terms that are added up.
  void BringInput(DerivedCompute& compute, size_t i, const std::map<Axis, CutIndex>& cuts) {
    const OperandSignature& operand = *OperandAt(compute.signature().inputs, i);
    if (Dispatch::Concerns(operand)) return;
    const DerivedValue& value = piece_.values[compute.inputs[i]];
    WantedForm wanted;
    for (const auto& [axis, cut] : cuts) {
      const auto along = value.type.layout.find(axis);
      const bool term = along != value.type.layout.end() && along->second.state == State::kPartial;
      if (term && operand.linear && (value.reduction == Reduction::kNone || AddsTerms(compute, axis))) continue;
      wanted[axis] = cut.index == 0 ? std::nullopt : DimOfIndex(operand, value.type.dims.size(), cut.index);
    }
    compute.inputs[i] = conversions_.Bring(compute.inputs[i], wanted);
  }

  void Emit(const StatedCompute& stated, const DerivedCompute& compute, size_t encoder) {
    const OpSignature& signature = compute.signature();
    std::vector<ValueType> types = forms_.OutputTypes(compute);
    DerivedStep step = {
        .kind = compute.kind, .inputs = compute.inputs, .parameters = compute.slots, .attributes = compute.attributes};
    Require(types.size() == stated.outputs.size(), "a statement has another number of outputs than ops.def");
    for (size_t i = 0; i < stated.outputs.size(); ++i) {
      const size_t output = Define(NameOf(stated.outputs[i], encoder), std::move(types[i]));
      piece_.values[output].reduction = signature.outputs[i].reduction;
      step.outputs.push_back(output);
    }
    // What a product with a weight makes has the segments of the weight's rows.
    for (const OpInfo::Parts& parts : InfoOf(compute.kind).parts) {
      const bool of_output = signature.outputs.front().dims.back().name == parts.name;
      std::vector<int64_t>& segments = piece_.values[step.outputs.front()].segments;
      if (of_output && parts.of_weight() && compute.slots_on_rank.front().cut == 0)
        segments = compute.slots_on_rank.front().segments;
      if (of_output && parts.passed) segments = piece_.values[compute.inputs.front()].segments;
    }
    piece_.forward.push_back(step);
    for (size_t i = 0; i < stated.outputs.size(); ++i)
      values_[KeyOf(stated.outputs[i], encoder)] = dispatch_.Made(compute, signature.outputs[i], step.outputs[i]);
  }

  WantedForm FormOfEnd(bool goes_over_bridge) const {
    const StatedType& stream = context_.statement().stream;
    WantedForm wanted;
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      if (context_.size(axis) == 1) continue;
      const bool cut =
          !goes_over_bridge && std::find(stream.over.begin(), stream.over.end(), axis) != stream.over.end();
      wanted[axis] = cut ? std::optional<int>(stream.cut) : std::nullopt;
    }
    return wanted;
  }

  const PieceContext& context_;
  const StatedPiece& stated_;
  DerivedPiece piece_;
  Conversions conversions_;
  Dispatch dispatch_;
  FormRules forms_;
  std::map<string, size_t> values_;  // by stated name
};

}  // namespace

DerivedPiece DeriveForward(const PieceContext& context, const StatedPiece& stated, bool goes_over_bridge) {
  return ForwardDeriver(context, stated).Derive(goes_over_bridge);
}

}  // namespace planwright
