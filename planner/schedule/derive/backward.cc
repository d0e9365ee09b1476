#include "planner/schedule/derive/backward.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"
#include "planner/schedule/derive/conversions.h"
#include "planner/schedule/derive/forms.h"
#include "planner/schedule/derive/gradient_rules.h"
#include "planner/schedule/derive/transposed_conversion.h"

namespace planwright {
namespace {

using std::string;
using State = AxisLayout::State;

class BackwardDeriver {
 public:
  BackwardDeriver(const PieceContext& context, const StatedPiece& stated, DerivedPiece& piece)
      : context_(context), stated_(stated), piece_(piece), forms_(context, piece) {}

  void Derive() {
    FindGradients();
    for (size_t output : piece_.outputs) {
      if (!takes_gradient_.contains(output)) continue;
      ValueType type = piece_.type(output);
      piece_.gradient_inputs.push_back(piece_.Add(
          {.name = "d" + piece_.values[output].stated, .stated = piece_.values[output].stated, .type = type}));
      AddTerm(output, piece_.gradient_inputs.back());
    }
    for (size_t step : InReverse()) Visit(step);
    for (size_t input : piece_.inputs) {
      if (takes_gradient_.contains(input)) Finish(input);
    }
    for (const auto& [value, gradient] : finished_) piece_.values[value].type.gradient = piece_.type(gradient).layout;
    for (size_t input : piece_.inputs) {
      if (const auto gradient = finished_.find(input); gradient != finished_.end())
        piece_.gradient_outputs.push_back(gradient->second);
    }
  }

 private:
  // The values that a gradient can come for: inputs that take one, and what is computed from them or from weights. And
  // how many gradients come for each.
  void FindGradients() {
    for (size_t input : piece_.inputs) {
      if (piece_.type(input).gradient) takes_gradient_.insert(input);
    }
    for (size_t step = 0; step < piece_.forward.size(); ++step) {
      const DerivedStep& forward = piece_.forward[step];
      bool learns = !forward.parameters.empty();
      for (size_t i = 0; i < forward.inputs.size(); ++i) {
        if (!takes_gradient_.contains(forward.inputs[i]) || !GivesGradient(piece_, step, i)) continue;
        learns = true;
        ++uses_[forward.inputs[i]];
      }
      for (size_t i = 0; learns && i < forward.outputs.size(); ++i) {
        if (TakesGradient(piece_, step, i)) takes_gradient_.insert(forward.outputs[i]);
      }
    }
    for (size_t output : piece_.outputs) ++uses_[output];
    awaited_ = uses_;
  }

  // Conversions of one reader are undone the last axis first, and over an axis in the order of the inputs.
  std::vector<size_t> InReverse() const {
    std::vector<size_t> steps;
    for (size_t end = piece_.forward.size(); end > 0;) {
      size_t first = end - 1;
      const int reader = piece_.forward[first].reader;
      while (reader >= 0 && first > 0 && piece_.forward[first - 1].reader == reader) --first;
      std::vector<size_t> run;
      for (size_t step = first; step < end; ++step) run.push_back(step);
      std::stable_sort(run.begin(), run.end(),
                       [&](size_t a, size_t b) { return piece_.forward[a].pass > piece_.forward[b].pass; });
      steps.insert(steps.end(), run.begin(), run.end());
      end = first;
    }
    return steps;
  }

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
      if (takes_gradient_.contains(forward.inputs[i]) && InfoOf(forward.kind).PassesGradient(i))
        AddTerm(forward.inputs[i], *gradients.front());
    }
  }

  void Undo(const DerivedStep& forward, const std::vector<std::optional<size_t>>& gradients) {
    const size_t input = forward.inputs.front();
    if (!takes_gradient_.contains(input)) return;
    if (forward.kind == OpKind::kAllReduce) return AddTerm(input, *gradients.front());
    DerivedStep undone = TransposeOf(piece_, forward, gradients);
    ValueType type = piece_.type(input);
    std::erase_if(type.layout, [](const auto& along) { return along.second.state == State::kPartial; });
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
      if (context_.SlotOf(stated_, forward.parameters[i]).trained) added.push_back(forward.parameters[i]);
    }
    const bool wanted = std::any_of(kind.rule->results.begin(), kind.rule->results.end(), [&](const auto& result) {
      return takes_gradient_.contains(forward.inputs[result.index]);
    });
    if (!wanted && added.empty()) return;
    const auto operands = OperandsOf(kind, gradients);
    if (!operands) return;
    compute.inputs = *operands;
    for (size_t i = 0; i < std::min(signature.parameters.size(), forward.parameters.size()); ++i) {
      compute.slots.push_back(forward.parameters[i]);
      compute.slots_on_rank.push_back(context_.SlotOf(stated_, forward.parameters[i]));
    }
    Emit(forward, kind, compute, std::move(added));
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
      if (signature.outputs[i].dtype == OperandSignature::DTypeClass::kWide) type.dtype = context_.block().wide();
      if (result.part >= 0) type.dims = DimSizes(context_, piece_, compute).Of(signature.outputs[i]);
      type.layout = forms_.OutputLayout(compute, signature.outputs[i], type.dims.size());
      step.outputs.push_back(DefineTerm(input, forward, std::move(type)));
    }
    piece_.backward.push_back(step);
    for (size_t i = 0; i < kind.rule->results.size(); ++i) {
      const GradientOperand& result = kind.rule->results[i];
      const size_t input = forward.inputs[result.index];
      if (!takes_gradient_.contains(input)) continue;
      result.part < 0 ? AddTerm(input, step.outputs[i]) : AddPart(input, result.part, step.outputs[i]);
    }
  }

  size_t Define(size_t value, string name, ValueType type) {
    type.gradient.reset();
    return piece_.Add({.name = std::move(name), .stated = piece_.values[value].stated, .type = std::move(type)});
  }

  // One of the gradients that come for a value. `reader`: what has used it.
  size_t DefineTerm(size_t value, const DerivedStep& reader, ValueType type) {
    const DerivedValue& of = piece_.values[value];
    string name = "d" + of.name;
    for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kExpertTp}) {
      const bool term = IsTerm(type, axis), of_term = IsTerm(of.type, axis);
      if (term && !of_term) name = absl::StrCat("d", of.stated, "_part");
      if (of_term && !term) name = absl::StrCat("d", of.stated, axis == Axis::kTp ? "_full" : "_all");
    }
    if (uses_[value] > 1) absl::StrAppend(&name, "_", ReaderName(reader));
    return Define(value, std::move(name), std::move(type));
  }

  static bool IsTerm(const ValueType& type, Axis axis) {
    const auto along = type.layout.find(axis);
    return along != type.layout.end() && along->second.state == State::kPartial;
  }

  // What a step makes; of a conversion, what its reader makes.
  const string& ReaderName(const DerivedStep& step) const {
    const size_t made = step.outputs.front();
    for (const DerivedStep& next : piece_.forward) {
      const bool reads = std::find(next.inputs.begin(), next.inputs.end(), made) != next.inputs.end();
      if (step.reader >= 0 && reads) return ReaderName(next);
    }
    return piece_.values[made].stated;
  }

  // The gradient of a value is finished when the last term has come.
  void AddTerm(size_t value, size_t gradient) {
    terms_[value].push_back(gradient);
    if (--awaited_[value] == 0) Finish(value);
  }

  void AddPart(size_t value, int part, size_t gradient) {
    parts_[value][part] = gradient;
    if (--awaited_[value] > 0) return;
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
      DerivedValue sum = piece_.values[gradient];
      sum.name = "d" + piece_.values[value].name, sum.stated = piece_.values[value].stated;
      DerivedStep add = {.kind = OpKind::kAdd, .inputs = terms->second};
      gradient = piece_.Add(std::move(sum));
      add.outputs = {gradient};
      piece_.backward.push_back(std::move(add));
    }
    return finished_[value] = Summed(value, gradient);
  }

  // The gradient of a value that is whole over an axis is a term where each rank has only a part of its uses. One that
  // was gathered is scattered where the gather is undone, any other is summed at once.
  size_t Summed(size_t value, size_t gradient) {
    const std::optional<size_t> maker = piece_.MakerOf(value);
    if (maker &&
        (piece_.forward[*maker].kind == OpKind::kAllGather || piece_.forward[*maker].kind == OpKind::kAllGatherV))
      return gradient;
    std::vector<Axis> axes;
    DerivedValue sum = piece_.values[gradient];
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      const auto along = sum.type.layout.find(axis);
      if (along == sum.type.layout.end() || along->second.state != State::kPartial) continue;
      if (piece_.type(value).layout.contains(axis)) continue;
      axes.push_back(axis);
    }
    if (axes.empty()) return gradient;
    for (Axis axis : axes) sum.type.layout.erase(axis);
    DerivedStep reduce = {.kind = OpKind::kAllReduce, .inputs = {gradient}, .attributes = {{"reduce", string("sum")}}};
    reduce.group = axes.size() == 2 ? "tp_cp" : GroupOver(axes.front());
    reduce.outputs = {piece_.Add(std::move(sum))};
    piece_.backward.push_back(reduce);
    return reduce.outputs.front();
  }

  const PieceContext& context_;
  const StatedPiece& stated_;
  DerivedPiece& piece_;
  FormRules forms_;
  std::set<size_t> takes_gradient_;
  std::map<size_t, int> uses_, awaited_;           // gradients that come for a value, and that have not come yet
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
