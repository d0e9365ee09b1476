#include "planner/compile/schedule/derive/backward.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/compile/schedule/derive/conversions.h"
#include "planner/compile/schedule/derive/forms.h"
#include "planner/compile/schedule/derive/gradient_rules.h"
#include "planner/compile/schedule/derive/gradient_uses.h"
#include "planner/compile/schedule/derive/transposed_conversion.h"

namespace planwright {
namespace {

using std::string;
using State = AxisLayout::State;

class BackwardDeriver {
 public:
  BackwardDeriver(const PieceContext& context, const StatedPiece& stated, DerivedPiece& piece)
      : context_(context), stated_(stated), piece_(piece), forms_(context, piece), uses_(piece) {}

  void Derive() {
    for (size_t output : piece_.outputs) {
      if (!uses_.TakesGradient(output)) continue;
      ValueType type = piece_.type(output);
      if (const auto stated = piece_.output_gradients.find(output); stated != piece_.output_gradients.end())
        type.layout = stated->second;
      piece_.gradient_inputs.push_back(piece_.Add(
          {.name = "d" + piece_.values[output].stated, .stated = piece_.values[output].stated, .type = type}));
      AddTerm(output, piece_.gradient_inputs.back());
    }
    for (size_t step : StepsInReverse(piece_)) Visit(step);
    for (size_t input : piece_.inputs) {
      if (uses_.TakesGradient(input)) Finish(input);
    }
    for (const auto& [value, gradient] : finished_) piece_.values[value].type.gradient = piece_.type(gradient).layout;
    piece_.gradients = finished_;
    for (size_t input : piece_.inputs) {
      if (const auto gradient = finished_.find(input); gradient != finished_.end())
        piece_.gradient_outputs.push_back(gradient->second);
    }
  }

 private:
  void Visit(size_t step) {
    std::vector<std::optional<size_t>> gradients;
    bool any = false;
    // A copy: the backward adds values, not steps of the forward.
    const DerivedStep forward = piece_.forward[step];
    for (size_t output : forward.outputs) {
      gradients.push_back(Finish(output));
      any |= gradients.back().has_value();
    }
    for (const BackwardKind& kind : BackwardKindsOf(piece_, step)) {
      if (any || kind.rule->starts_gradient()) Differentiate(forward, kind, gradients);
    }
    if (!any) return;
    if (OpClassOf(forward.kind) == OpClass::kCommunication || forward.kind == OpKind::kLocalSlice ||
        forward.kind == OpKind::kSplit) {
      return Undo(forward, gradients);
    }
    for (size_t i = 0; i < forward.inputs.size(); ++i) {
      if (uses_.TakesGradient(forward.inputs[i]) && InfoOf(forward.kind).PassesGradient(i))
        AddTerm(forward.inputs[i], *gradients.front());
    }
  }

  void Undo(const DerivedStep& forward, const std::vector<std::optional<size_t>>& gradients) {
    const size_t input = forward.inputs.front();
    if (!uses_.TakesGradient(input)) return;
    if (forward.kind == OpKind::kAllReduce) return AddTerm(input, *gradients.front());
    DerivedStep undone = TransposeOf(piece_, forward, gradients);
    ValueType type = piece_.type(input);
    std::erase_if(type.layout, [](const auto& along) { return along.second.state == State::kPartial; });
    // What is no matter of this conversion: a term over another axis stays one.
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      const bool own = GroupOver(axis) == forward.group || type.layout.contains(axis);
      if (!own && IsTermOver(piece_.type(*gradients.front()), axis)) type.layout[axis] = {State::kPartial};
    }
    if (forward.kind == OpKind::kScatterTokens) type.dtype = piece_.type(forward.outputs.front()).dtype;
    undone.outputs = {DefineTerm(input, forward, std::move(type))};
    piece_.backward.push_back(undone);
    AddTerm(input, undone.outputs.front());
  }

  // The operands of a backward kind; none if the gradient that it reads does not come.
  std::optional<std::vector<size_t>> OperandsOf(const BackwardKind& kind,
                                                const std::vector<std::optional<size_t>>& gradients) {
    std::vector<size_t> operands;
    for (const GradientOperand& operand : kind.rule->operands) {
      if (operand.kind == GradientOperand::Kind::kOutputGradient) {
        if (!gradients[operand.index]) return std::nullopt;
        operands.push_back(*gradients[operand.index]);
        continue;
      }
      if (!kind.chain[operand.link]) continue;
      const DerivedStep& link = piece_.forward[*kind.chain[operand.link]];
      if (operand.kind == GradientOperand::Kind::kOutput) {
        operands.push_back(ReducedForm(piece_, link.outputs[operand.index]));
      } else if (operand.index < link.inputs.size()) {
        operands.push_back(GatheredAgain(link.inputs[operand.index]));
      }
    }
    return operands;
  }

  size_t GatheredAgain(size_t value) {
    const std::optional<size_t> maker = piece_.MakerOf(value);
    if (!maker) return value;
    DerivedStep gather = piece_.forward[*maker];
    const bool gathers = gather.kind == OpKind::kAllGather || gather.kind == OpKind::kAllGatherV;
    if (gathers && gather.group == GroupOver(Axis::kCp) && again_.insert(value).second)
      piece_.backward.push_back(std::move(gather));
    return value;
  }

  void Differentiate(const DerivedStep& forward, const BackwardKind& kind,
                     const std::vector<std::optional<size_t>>& gradients) {
    DerivedCompute compute = {.kind = kind.info->kind, .attributes = context_.AttributesOf(kind.info->kind)};
    for (const AttributeSpec& spec : kind.info->attributes) {
      const auto known = forward.attributes.find(spec.name);
      if (spec.values.size() != 1 && known != forward.attributes.end()) compute.attributes.insert(*known);
    }
    const OpSignature& signature = compute.signature();
    std::vector<string> added;
    for (size_t i = 0; i < std::min(signature.gradients.size(), forward.parameters.size()); ++i) {
      compute.adds_to.push_back(context_.SlotOf(stated_, forward.parameters[i]));
      if (compute.adds_to.back().trained) added.push_back(forward.parameters[i]);
    }
    const bool wanted = std::any_of(kind.rule->results.begin(), kind.rule->results.end(), [&](const auto& result) {
      return uses_.TakesGradient(forward.inputs[result.index]);
    });
    if (!wanted && added.empty()) return;
    const auto operands = OperandsOf(kind, gradients);
    if (!operands) return;
    compute.inputs = *operands;
    for (size_t i = 0; i < std::min(signature.parameters.size(), forward.parameters.size()); ++i) {
      compute.slots.push_back(forward.parameters[i]);
      compute.slots_on_rank.push_back(context_.SlotOf(stated_, forward.parameters[i]));
    }
    for (size_t i = 0; i < compute.adds_to.size(); ++i) {
      if (compute.adds_to[i].trained) AddToSlot(forward.parameters[i], compute, i);
    }
    Emit(forward, kind, compute, std::move(added));
  }

  // What the ranks along tp add to the gradient of a slot is an output like any other. `i`: of the compute's gradients.
  void AddToSlot(const string& slot, const DerivedCompute& compute, size_t i) {
    const OperandSignature& operand = compute.signature().gradients[i];
    const Layout layout = forms_.OutputLayout(compute, operand, compute.adds_to[i].shape.size());
    const auto over_tp = layout.find(Axis::kTp);
    TpGradient gradient = TpGradient::kReplicated;
    if (context_.size(Axis::kTp) == 1) gradient = TpGradient::kSharded;
    if (over_tp != layout.end())
      gradient = over_tp->second.state == State::kSharded ? TpGradient::kSharded : TpGradient::kPartial;
    const auto [known, first] = piece_.slot_gradients.emplace(slot, gradient);
    Require(first || known->second == gradient, "uses of the slot " + slot + " give gradients in two forms");
  }

  void Emit(const DerivedStep& forward, const BackwardKind& kind, const DerivedCompute& compute,
            std::vector<string> added) {
    const OpSignature& signature = compute.signature();
    DerivedStep step = {.kind = compute.kind,
                        .inputs = compute.inputs,
                        .parameters = compute.slots,
                        .gradients = std::move(added),
                        .attributes = compute.attributes};
    for (size_t i = 0; i < kind.rule->results.size(); ++i) {
      const GradientOperand& result = kind.rule->results[i];
      const size_t input = forward.inputs[result.index];
      ValueType type = piece_.type(input);
      type.gradient.reset();
      if (signature.outputs[i].dtype == OperandSignature::DTypeClass::kWide) type.dtype = context_.wide();
      if (result.part >= 0) type.dims = DimSizes(context_, piece_, compute).Of(signature.outputs[i]);
      type.layout = forms_.OutputLayout(compute, signature.outputs[i], type.dims.size());
      step.outputs.push_back(DefineTerm(input, forward, std::move(type)));
    }
    piece_.backward.push_back(step);
    for (size_t i = 0; i < kind.rule->results.size(); ++i) {
      const GradientOperand& result = kind.rule->results[i];
      const size_t input = forward.inputs[result.index];
      if (!uses_.TakesGradient(input)) continue;
      result.part < 0 ? AddTerm(input, step.outputs[i]) : AddPart(input, result.part, step.outputs[i]);
    }
  }

  size_t Define(size_t value, string name, ValueType type) {
    type.gradient.reset();
    return piece_.Add({.name = std::move(name), .stated = piece_.values[value].stated, .type = std::move(type)});
  }

  // One of the gradients that come for a value. `reader`: what has used it.
  size_t DefineTerm(size_t value, const DerivedStep& reader, ValueType type) {
    string name = uses_.NameOfTerm(value, reader, type);
    return Define(value, std::move(name), std::move(type));
  }

  // The gradient of a value is finished when the last term has come.
  void AddTerm(size_t value, size_t gradient) {
    terms_[value].push_back(gradient);
    if (++come_[value] == uses_.CountOf(value)) Finish(value);
  }

  void AddPart(size_t value, int part, size_t gradient) {
    parts_[value][part] = gradient;
    if (++come_[value] < uses_.CountOf(value)) return;
    const int last = static_cast<int>(piece_.type(value).dims.size()) - 1;
    DerivedStep join = {.kind = OpKind::kConcat, .attributes = {{"dim", int64_t{last}}}};
    for (const auto& [number, each] : parts_[value]) join.inputs.push_back(each);
    ValueType type = piece_.type(value);
    type.layout = piece_.type(join.inputs.front()).layout;
    join.outputs = {Define(value, "d" + piece_.values[value].name, std::move(type))};
    piece_.backward.push_back(join);
    terms_[value].push_back(join.outputs.front());
    Finish(value);
  }

  // The whole gradient of a value, as far as it has come; none if nothing has.
  std::optional<size_t> Finish(size_t value) {
    if (const auto known = finished_.find(value); known != finished_.end()) return known->second;
    const auto terms = terms_.find(value);
    if (terms == terms_.end() || terms->second.empty()) return std::nullopt;
    size_t gradient = terms->second.front();
    if (terms->second.size() > 1) {
      DerivedStep add = {.kind = OpKind::kAdd, .inputs = terms->second};
      gradient = Define(value, "d" + piece_.values[value].name, piece_.type(gradient));
      add.outputs = {gradient};
      piece_.backward.push_back(std::move(add));
    }
    return finished_[value] = Summed(value, gradient);
  }

  // Whether each kind that differentiates the step is linear in the gradient of its output.
  bool TakesTerms(size_t step) const {
    if (InfoOf(piece_.forward[step].kind).passes_gradient) return false;
    const std::vector<BackwardKind> kinds = BackwardKindsOf(piece_, step);
    return !kinds.empty() && std::all_of(kinds.begin(), kinds.end(), [](const BackwardKind& kind) {
      const GradientOperand& first = kind.rule->operands.front();
      // Of several gradients each may be another sum.
      const auto gradients = std::count_if(
          kind.rule->operands.begin(), kind.rule->operands.end(),
          [](const GradientOperand& each) { return each.kind == GradientOperand::Kind::kOutputGradient; });
      return first.kind == GradientOperand::Kind::kOutputGradient && kind.info->signature->inputs.front().linear &&
             kind.rule->operands.size() <= 2 && gradients == 1;
    });
  }

  // The gradient of a carry may be stated to be a term of a sum. Those of parts of a value are joined as they are, and
  // the gradient of the value is summed.
  bool StaysTerm(size_t value) const {
    if (const std::optional<size_t> maker = piece_.MakerOf(value))
      return piece_.forward[*maker].kind == OpKind::kSplitFeatures;
    const std::optional<Layout>& gradient = piece_.type(value).gradient;
    return gradient && std::any_of(gradient->begin(), gradient->end(),
                                   [](const auto& along) { return along.second.state == State::kPartial; });
  }

  // The gradient of a value that is whole over an axis is a term where each rank has only a part of its uses. One that
  // was gathered is scattered where the gather is undone. One of a product stays a term, since its backward is linear
  // in it: what that makes is summed. Any other is summed at once.
  size_t Summed(size_t value, size_t gradient) {
    if (StaysTerm(value)) return gradient;
    const std::optional<size_t> maker = piece_.MakerOf(value);
    if (maker &&
        (piece_.forward[*maker].kind == OpKind::kAllGather || piece_.forward[*maker].kind == OpKind::kAllGatherV))
      return gradient;
    if (maker && OpClassOf(piece_.forward[*maker].kind) == OpClass::kCompute && TakesTerms(*maker)) return gradient;
    std::vector<Axis> axes;
    ValueType sum = piece_.type(gradient);
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      if (IsTermOver(sum, axis) && !piece_.type(value).layout.contains(axis)) axes.push_back(axis);
    }
    if (axes.empty()) return gradient;
    for (Axis axis : axes) sum.layout.erase(axis);
    DerivedStep reduce = {.kind = OpKind::kAllReduce, .inputs = {gradient}, .attributes = {{"reduce", string("sum")}}};
    reduce.group = axes.size() == 2 ? "tp_cp" : GroupOver(axes.front());
    reduce.outputs = {Define(value, "d" + piece_.values[value].name, std::move(sum))};
    piece_.backward.push_back(reduce);
    return reduce.outputs.front();
  }

  const PieceContext& context_;
  const StatedPiece& stated_;
  DerivedPiece& piece_;
  FormRules forms_;
  const GradientUses uses_;
  std::map<size_t, size_t> come_;                  // how many gradients have come for a value
  std::map<size_t, std::vector<size_t>> terms_;    // in the order in which they came
  std::map<size_t, std::map<int, size_t>> parts_;  // by their numbers
  std::map<size_t, size_t> finished_;
  std::set<size_t> again_;  // values that the backward gathers again
};

}  // namespace

void DeriveBackward(const PieceContext& context, const StatedPiece& stated, DerivedPiece& piece) {
  BackwardDeriver(context, stated, piece).Derive();
}

}  // namespace planwright
