#include "planner/compile/schedule/derive/forms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

bool IsLeading(char index) { return index >= '0' && index <= '9'; }

bool MayBeCut(char index, Axis axis) {
  if (index == 's') return axis == Axis::kCp;
  return IsLeading(index) || (index >= 'a' && index <= 'z');
}

bool IsDispatched(const OperandSignature& operand) {
  return operand.of_rank && operand.dtype != OperandSignature::DTypeClass::kInt64;
}

}  // namespace

const OpSignature& DerivedCompute::signature() const {
  const Instruction instruction = {.kind = kind, .attributes = attributes};
  const OpSignature* found = SignatureOf(instruction);
  Require(found != nullptr, "a statement computes with a kind that has no operands");
  return *found;
}

char IndexOfDim(const OperandSignature& operand, size_t dims, int dim) {
  const size_t own = operand.dims.size(), leading = operand.leading && dims > own ? dims - own : 0;
  const auto at = static_cast<size_t>(dim);
  if (at < leading) return static_cast<char>('0' + dim);
  return at - leading < own ? operand.dims[at - leading].index : '_';
}

std::optional<int> DimOfIndex(const OperandSignature& operand, size_t dims, char index) {
  for (int dim = 0; dim < static_cast<int>(dims); ++dim) {
    if (IndexOfDim(operand, dims, dim) == index) return dim;
  }
  return std::nullopt;
}

const AxisLayout* FormRules::Along(Axis axis, size_t value) const {
  const Layout& layout = piece_.type(value).layout;
  const auto along = layout.find(axis);
  return along == layout.end() ? nullptr : &along->second;
}

CutIndex FormRules::CutOfWeight(Axis axis, const DerivedCompute& compute) const {
  const OpSignature& signature = compute.signature();
  for (const auto& [slots, operands] :
       {std::pair(&compute.slots_on_rank, &signature.parameters), std::pair(&compute.adds_to, &signature.gradients)}) {
    for (size_t i = 0; i < slots->size(); ++i) {
      const DerivedSlot& slot = (*slots)[i];
      const int dim = slot.CutOver(axis);
      if (dim >= 0) return {IndexOfDim(*OperandAt(*operands, i), slot.shape.size(), dim), false};
    }
  }
  return {};
}

CutIndex FormRules::CutOver(Axis axis, const DerivedCompute& compute) const {
  if (const CutIndex of_weight = CutOfWeight(axis, compute); of_weight.index != 0) return of_weight;
  const OpSignature& signature = compute.signature();
  const bool over_cp = axis == Axis::kCp, by_features = over_cp && InfoOf(compute.kind).cp_by_features;
  const bool zigzag = over_cp && context_.statement().zigzag;
  // A weight that is whole needs all of its indices.
  const auto of_whole_weight = [&](char index) {
    for (size_t i = 0; i < compute.slots_on_rank.size(); ++i) {
      if (DimOfIndex(*OperandAt(signature.parameters, i), compute.slots_on_rank[i].shape.size(), index)) return true;
    }
    return false;
  };
  bool any_cut = false;
  for (size_t i = 0; i < compute.inputs.size(); ++i) {
    const OperandSignature& operand = *OperandAt(signature.inputs, i);
    const AxisLayout* along = Along(axis, compute.inputs[i]);
    if (operand.of_rank || along == nullptr || along->state != AxisLayout::State::kSharded) continue;
    any_cut = true;
    const char index = IndexOfDim(operand, piece_.type(compute.inputs[i]).dims.size(), along->dim);
    if (MayBeCut(index, axis) && (by_features || !of_whole_weight(index))) return {index, along->zigzag};
  }
  if (over_cp) {
    for (const OperandSignature& operand : signature.inputs) {
      if (operand.of_rank) continue;
      for (const SignatureDim& dim : operand.dims) {
        if (dim.index == 't' || dim.index == 's') return {dim.index, zigzag};
      }
    }
  }
  // What finds its own positions among those of a sequence has them cut over tp, also where it is given terms of a sum.
  if (axis == Axis::kTp && compute.kind == OpKind::kAddImages) return {'t', false};
  if (by_features) return {'f', false};
  const bool leading = !signature.inputs.empty() && signature.inputs.front().leading;
  return leading && any_cut ? CutIndex{'0', zigzag} : CutIndex{};
}

bool FormRules::HasTermOver(Axis axis, const DerivedCompute& compute) const {
  return std::any_of(compute.inputs.begin(), compute.inputs.end(), [&](size_t input) {
    const AxisLayout* along = Along(axis, input);
    return along && along->state == AxisLayout::State::kPartial;
  });
}

AxisLayout FormRules::OutputOver(Axis axis, const DerivedCompute& compute, const OperandSignature& output,
                                 size_t dims) const {
  using enum AxisLayout::State;
  const std::vector<OperandSignature>& inputs = compute.signature().inputs;
  if (axis == Axis::kExpertTp) {
    if (!IsDispatched(output)) return {};
    const CutIndex of_weight = CutOfWeight(axis, compute);
    // Rows are pieces of what the ranks gather, except where a weight is cut.
    if (of_weight.index == 0) return {kSharded, 0};
    const auto dim = DimOfIndex(output, dims, of_weight.index);
    return dim ? AxisLayout{kSharded, *dim} : AxisLayout{kPartial};
  }
  if (output.of_rank) return {};
  const bool comes_back = !inputs.empty() && std::all_of(inputs.begin(), inputs.end(),
                                                         [](const OperandSignature& input) { return input.of_rank; });
  if (comes_back) {
    // Back from the token dispatch each rank has its own tokens, which differ over both axes.
    return {kSharded, DimOfIndex(output, dims, 't').value_or(0), axis == Axis::kCp && context_.statement().zigzag};
  }
  if (HasTermOver(axis, compute)) return {kPartial};
  const CutIndex cut = CutOver(axis, compute);
  if (cut.index == 0) return {};
  const auto dim = DimOfIndex(output, dims, cut.index);
  return dim ? AxisLayout{kSharded, *dim, cut.zigzag} : AxisLayout{kPartial};
}

Layout FormRules::OutputLayout(const DerivedCompute& compute, const OperandSignature& output, size_t dims) const {
  Layout layout;
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kExpertTp}) {
    if (context_.size(axis) == 1) continue;
    const AxisLayout along = OutputOver(axis, compute, output, dims);
    if (along.state != AxisLayout::State::kReplicated) layout[axis] = along;
  }
  return layout;
}

std::vector<ValueType> FormRules::OutputTypes(const DerivedCompute& compute) const {
  const DimSizes sizes(context_, piece_, compute);
  std::vector<ValueType> types;
  for (const OperandSignature& output : compute.signature().outputs) {
    ValueType& type = types.emplace_back();
    switch (output.dtype) {
      case OperandSignature::DTypeClass::kPlan: type.dtype = context_.dtype(); break;
      case OperandSignature::DTypeClass::kWide: type.dtype = context_.wide(); break;
      case OperandSignature::DTypeClass::kInt64: type.dtype = DType::kInt64; break;
      case OperandSignature::DTypeClass::kFp64: type.dtype = DType::kFp64; break;
    }
    type.dims = sizes.Of(output);
    type.layout = OutputLayout(compute, output, type.dims.size());
    type.host = type.dtype == DType::kInt64 && InfoOf(compute.kind).counts_on_host;
  }
  return types;
}

DimSizes::DimSizes(const PieceContext& context, const DerivedPiece& piece, const DerivedCompute& compute)
    : context_(context), kind_(compute.kind) {
  const OpSignature& signature = compute.signature();
  for (size_t i = 0; i < compute.inputs.size(); ++i)
    Bind(*OperandAt(signature.inputs, i), piece.type(compute.inputs[i]).dims);
  Compute(compute);
  // Last, because a kind that works by features reads only a part of its weights; it says the sizes itself.
  for (size_t i = 0; i < compute.slots_on_rank.size(); ++i) {
    const std::vector<int64_t>& shape = compute.slots_on_rank[i].shape;
    Bind(*OperandAt(signature.parameters, i), std::vector<Dim>(shape.begin(), shape.end()));
  }
}

void DimSizes::Bind(const OperandSignature& operand, const std::vector<Dim>& dims) {
  const size_t own = operand.dims.size();
  Require(dims.size() >= own, "an operand has too few dims");
  const size_t leading = operand.leading ? dims.size() - own : 0;
  if (operand.leading && leading_.empty()) leading_.assign(dims.begin(), dims.begin() + static_cast<long>(leading));
  for (size_t i = 0; i < own; ++i) {
    const SignatureDim& dim = operand.dims[i];
    if (!dim.name.empty() && dim.number < 0) sizes_.emplace(dim.name, dims[leading + i]);
  }
}

// Formulas over attributes and other sizes. Each is computed when what it reads is known, whatever their order.
void DimSizes::Compute(const DerivedCompute& compute) {
  const OpInfo& info = InfoOf(compute.kind);
  const auto value_of = [&](const std::string& name) {
    const auto attribute = compute.attributes.find(name);
    const auto size = sizes_.find(name);
    if (attribute != compute.attributes.end()) return static_cast<double>(std::get<int64_t>(attribute->second));
    const int64_t* number = size == sizes_.end() ? nullptr : std::get_if<int64_t>(&size->second);
    return number ? static_cast<double>(*number) : std::numeric_limits<double>::quiet_NaN();
  };
  for (size_t round = 0; round <= info.sizes.size(); ++round) {
    for (const OpInfo::Size& size : info.sizes) {
      const double value = size.value.Evaluate(value_of);
      if (std::isfinite(value)) sizes_[size.name] = static_cast<int64_t>(size.rounded_up ? std::ceil(value) : value);
    }
  }
  for (const OpInfo::Parts& parts : info.parts) {
    if (parts.sizes.empty() || parts.more) continue;
    double sum = 0;
    for (const Expression& part : parts.sizes) sum += part.Evaluate(value_of);
    if (std::isfinite(sum)) sizes_[parts.name] = static_cast<int64_t>(sum);
  }
}

Dim DimSizes::SizeOf(const SignatureDim& dim) const {
  if (dim.number >= 0) return dim.number;
  if (const auto known = sizes_.find(dim.name); known != sizes_.end()) return known->second;
  if (dim.factors.empty()) return context_.SymbolOf(kind_, dim.name);
  int64_t product = 1;
  for (const std::string& factor : dim.factors) product *= std::get<int64_t>(sizes_.at(factor));
  return product;
}

std::vector<Dim> DimSizes::Of(const OperandSignature& operand) const {
  std::vector<Dim> dims = operand.leading ? leading_ : std::vector<Dim>{};
  for (const SignatureDim& dim : operand.dims) dims.push_back(SizeOf(dim));
  return dims;
}

}  // namespace planwright
