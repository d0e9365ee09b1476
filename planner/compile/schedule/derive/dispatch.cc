#include "planner/compile/schedule/derive/dispatch.h"

#include <algorithm>
#include <utility>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

using State = AxisLayout::State;

bool IsInteger(const OperandSignature& operand) { return operand.dtype == OperandSignature::DTypeClass::kInt64; }

// Tokens of all ep ranks.
bool IsOfAllTokens(const OperandSignature& operand) {
  if (!operand.of_rank || operand.dims.empty()) return false;
  const SignatureDim& first = operand.dims.front();
  return first.index == 'T';
}

}  // namespace

// Rows are wanted with the experts by what reads weights that are stacked by expert, and by what reads the order of
// rows that were made there.
bool Dispatch::ReadsWithExperts(const DerivedCompute& compute) const {
  if (std::any_of(compute.slots_on_rank.begin(), compute.slots_on_rank.end(),
                  [](const DerivedSlot& slot) { return slot.experts; }))
    return true;
  return std::any_of(compute.inputs.begin(), compute.inputs.end(), [&](size_t input) {
    return piece_.type(input).dtype == DType::kInt64 && piece_.values[input].with_experts;
  });
}

std::optional<size_t> Dispatch::FindForm(size_t value, OpKind made_by) const {
  for (const DerivedStep& step : piece_.forward) {
    if (step.kind == made_by && piece_.values[step.outputs.front()].made == piece_.values[value].made)
      return step.outputs.front();
  }
  return std::nullopt;
}

size_t Dispatch::CountsForm(OpKind kind, size_t from, std::vector<Dim> dims, const char* suffix) {
  if (const auto known = FindForm(from, kind)) return *known;
  DerivedValue counts = conversions_.FormOf(from, suffix);
  counts.type = {DType::kInt64, std::move(dims), {}, std::nullopt, true};
  const bool gathers = kind == OpKind::kAllGather;
  return conversions_.Emit(kind, {from}, std::move(counts), gathers ? Attributes{{"dim", int64_t{0}}} : Attributes{},
                           GroupOver(gathers ? Axis::kExpertTp : Axis::kEp), 0);
}

// How many rows of each expert come to this rank, or to all ranks that gather them.
size_t Dispatch::Counts(bool gathered) {
  Require(piece_.counts.has_value(), "the rows of experts have no counts");
  size_t counts = *piece_.counts;
  const int64_t ep = context_.size(Axis::kEp), expert_tp = context_.size(Axis::kExpertTp);
  if (ep > 1) counts = CountsForm(OpKind::kAllToAll, counts, {ep, context_.module().experts() / ep}, "_in");
  if (!gathered || expert_tp == 1) return counts;
  std::vector<Dim> dims = piece_.type(counts).dims;
  dims.front() = std::get<int64_t>(dims.front()) * expert_tp;
  return CountsForm(OpKind::kAllGather, counts, std::move(dims), "_all");
}

size_t Dispatch::ToExperts(size_t rows) {
  if (piece_.values[rows].with_experts || context_.size(Axis::kEp) == 1) return rows;
  DerivedValue there = conversions_.FormOf(rows, "_in");
  there.with_experts = true;
  // They are as many as if they were taken from the tokens of all ranks.
  there.type.dims.front() = context_.SymbolOf(OpKind::kSelectRows, "X");
  const size_t sent = *piece_.counts, received = Counts(false);
  return conversions_.Emit(OpKind::kAllToAllV, {rows, sent, received}, std::move(there), {}, GroupOver(Axis::kEp), 0);
}

// The way back: send and receive counts change places.
size_t Dispatch::ToTokens(size_t rows, const Dim& count) {
  if (!piece_.values[rows].with_experts || context_.size(Axis::kEp) == 1) return rows;
  DerivedValue home = conversions_.SuccessorOf(rows, "_in");
  home.with_experts = false;
  home.type.dims.front() = count;
  const size_t sent = Counts(false), received = *piece_.counts;
  return conversions_.Emit(OpKind::kAllToAllV, {rows, sent, received}, std::move(home), {}, GroupOver(Axis::kEp), 0);
}

size_t Dispatch::GatherRows(size_t rows) {
  const Layout& layout = piece_.type(rows).layout;
  if (!layout.contains(Axis::kExpertTp)) return rows;
  DerivedValue all = conversions_.FormOf(rows, "_all");
  all.type.layout.erase(Axis::kExpertTp);
  all.type.dims.front() = context_.WholeOf(all.type.dims.front(), Axis::kExpertTp);
  return conversions_.Emit(OpKind::kAllGatherV, {rows, Counts(true)}, std::move(all), {}, GroupOver(Axis::kExpertTp),
                           1);
}

size_t Dispatch::ScatterRows(size_t terms) {
  const Layout& layout = piece_.type(terms).layout;
  const auto along = layout.find(Axis::kExpertTp);
  if (along == layout.end() || along->second.state != State::kPartial) return terms;
  DerivedValue own = conversions_.SuccessorOf(terms, "_part");
  own.type.layout[Axis::kExpertTp] = {State::kSharded, 0};
  own.type.dims.front() = context_.PartOf(own.type.dims.front(), Axis::kExpertTp);
  return conversions_.Emit(OpKind::kReduceScatterV, {terms, Counts(true)}, std::move(own), {},
                           GroupOver(Axis::kExpertTp), -1);
}

size_t Dispatch::GatherTokens(size_t tokens) {
  DerivedValue all = conversions_.FormOf(tokens, "_all");
  all.of_rank = all.with_experts = true;
  all.type.dims.front() = std::get<int64_t>(all.type.dims.front()) * context_.size(Axis::kEp);
  all.type.layout.clear();
  if (all.type.dtype != DType::kInt64 && context_.size(Axis::kExpertTp) > 1)
    all.type.layout[Axis::kExpertTp] = {State::kSharded, 0};
  return conversions_.Emit(OpKind::kGatherTokens, {tokens}, std::move(all), {}, GroupOver(Axis::kEp), 0);
}

void Dispatch::BringOperands(DerivedCompute& compute) {
  const OpSignature& signature = compute.signature();
  const auto makes_rows = [](const OperandSignature& output) { return output.of_rank && !IsInteger(output); };
  if (std::any_of(signature.outputs.begin(), signature.outputs.end(), makes_rows)) Counts(true);
  const bool with_experts = ReadsWithExperts(compute);
  const bool gathered = !compute.slots_on_rank.empty();
  // How many rows there are where the tokens are: as many as the order has.
  Dim at_home = int64_t{0};
  for (size_t input : compute.inputs) {
    if (piece_.values[input].of_rank && piece_.type(input).dtype == DType::kInt64)
      at_home = piece_.type(input).dims.front();
  }
  for (size_t i = 0; i < compute.inputs.size(); ++i) {
    const OperandSignature& operand = *OperandAt(signature.inputs, i);
    size_t& input = compute.inputs[i];
    if (!Concerns(operand)) continue;
    if (IsOfAllTokens(operand)) {
      input = GatherTokens(input);
    } else if (IsInteger(operand)) {
      if (!piece_.values[input].of_rank) input = Counts(gathered);
    } else if (with_experts) {
      input = ToExperts(ScatterRows(input));
    } else {
      input = ToTokens(ScatterRows(input), at_home);
    }
  }
  if (!gathered) return;
  for (size_t i = 0; i < compute.inputs.size(); ++i) {
    const OperandSignature& operand = *OperandAt(signature.inputs, i);
    if (Concerns(operand) && !IsInteger(operand)) compute.inputs[i] = GatherRows(compute.inputs[i]);
  }
}

size_t Dispatch::Made(const DerivedCompute& compute, const OperandSignature& operand, size_t output) {
  DerivedValue& value = piece_.values[output];
  value.of_rank = operand.of_rank;
  if (!operand.of_rank) return output;
  const bool of_all_tokens = std::any_of(compute.signature().inputs.begin(), compute.signature().inputs.end(),
                                         [](const OperandSignature& input) { return IsOfAllTokens(input); });
  value.with_experts = of_all_tokens || ReadsWithExperts(compute);
  // As rows that were sent there are called.
  if (of_all_tokens && !IsInteger(operand)) value.name += "_in";
  if (operand.reduction != Reduction::kScatterTokens) return output;
  DerivedValue own = conversions_.SuccessorOf(output, "_all");
  own.of_rank = own.with_experts = false;
  own.type.dtype = context_.dtype();
  own.type.dims.front() = std::get<int64_t>(own.type.dims.front()) / context_.size(Axis::kEp);
  own.type.layout.clear();
  for (Axis axis : {Axis::kTp, Axis::kCp}) {
    if (context_.size(axis) > 1)
      own.type.layout[axis] = {State::kSharded, 0, axis == Axis::kCp && context_.statement().zigzag};
  }
  return conversions_.Emit(OpKind::kScatterTokens, {output}, std::move(own), {}, GroupOver(Axis::kEp), -1);
}

}  // namespace planwright
