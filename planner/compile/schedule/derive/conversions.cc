#include "planner/compile/schedule/derive/conversions.h"

#include <algorithm>
#include <utility>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

using State = AxisLayout::State;

bool IsReduction(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kReduceScatterV ||
         kind == OpKind::kScatterTokens;
}

Attributes OfCut(int dim, bool zigzag) {
  Attributes attributes = {{"dim", int64_t{dim}}};
  if (zigzag) attributes["zigzag"] = int64_t{1};
  return attributes;
}

}  // namespace

std::string GroupOver(Axis axis) { return axis == Axis::kExpertTp ? "ep_tp" : std::string(AxisName(axis)); }

const AxisLayout* Conversions::Along(size_t value, Axis axis) const {
  const Layout& layout = piece_.type(value).layout;
  const auto along = layout.find(axis);
  return along == layout.end() ? nullptr : &along->second;
}

bool Conversions::Fits(size_t value, Axis axis, const std::optional<int>& wanted) const {
  const AxisLayout* along = Along(value, axis);
  if (!wanted || !along) return !wanted && !along;
  return along->state == State::kSharded && along->dim == *wanted;
}

// The form in which most axes are right; of equal ones the newest.
size_t Conversions::NearestForm(size_t value, const WantedForm& wanted) const {
  const DerivedValue& from = piece_.values[value];
  size_t nearest = value;
  std::ptrdiff_t most = -1;
  for (size_t other = 0; other < piece_.values.size(); ++other) {
    const DerivedValue& form = piece_.values[other];
    if (form.made != from.made || form.of_rank != from.of_rank || form.with_experts != from.with_experts) continue;
    const auto right = std::count_if(wanted.begin(), wanted.end(),
                                     [&](const auto& axis) { return Fits(other, axis.first, axis.second); });
    // The first that fits needs nothing.
    if (right == static_cast<std::ptrdiff_t>(wanted.size())) return other;
    if (right >= most) most = right, nearest = other;
  }
  return nearest;
}

size_t Conversions::Bring(size_t value, const WantedForm& wanted) {
  value = NearestForm(value, wanted);
  pass_ = 0;
  std::vector<Axis> sums;
  for (const auto& [axis, dim] : wanted) {
    const AxisLayout* along = Along(value, axis);
    if (along && along->state == State::kPartial && !dim) sums.push_back(axis);
  }
  if (!sums.empty()) value = AllReduce(value, sums);
  for (const auto& [axis, dim] : wanted) value = Join(value, axis, dim);
  for (Axis axis : {Axis::kCp, Axis::kTp}) {
    const auto cut = wanted.find(axis);
    if (cut != wanted.end() && cut->second && !Along(value, axis)) value = Slice(value, axis, *cut->second);
  }
  return value;
}

// All that leaves a value less cut over the axis than it is, or cut otherwise.
size_t Conversions::Join(size_t value, Axis axis, const std::optional<int>& wanted) {
  const AxisLayout* along = Along(value, axis);
  if (!along || Fits(value, axis, wanted)) return value;
  if (along->state == State::kPartial) return ReduceScatter(value, axis, *wanted);
  if (!wanted) return AllGather(value, axis);
  Require(axis == Axis::kCp, piece_.values[value].name + " would have to be cut along another dim over tp");
  return Reshard(value, *wanted);
}

DerivedValue Conversions::FormOf(size_t value, const char* suffix) const {
  DerivedValue form = piece_.values[value];
  form.name = form.stated + suffix;
  form.reduction = Reduction::kSum;
  return form;
}

DerivedValue Conversions::SuccessorOf(size_t value, const char* suffix) {
  DerivedValue form = FormOf(value, "");
  if (std::string& name = piece_.values[value].name; name == form.name) name += suffix;
  return form;
}

size_t Conversions::Emit(OpKind kind, std::vector<size_t> inputs, DerivedValue output, Attributes attributes,
                         const std::string& group, int pass) {
  const size_t from = inputs.front();
  const bool reduces = IsReduction(kind);
  const size_t made = piece_.Add(std::move(output));
  DerivedStep step = {.kind = kind,
                      .inputs = std::move(inputs),
                      .outputs = {made},
                      .attributes = std::move(attributes),
                      .group = group,
                      .reader = reduces ? -1 : reader_,
                      .pass = pass};
  const std::optional<size_t> maker = piece_.MakerOf(from);
  auto at = piece_.forward.end();
  if (reduces && maker) {
    at = piece_.forward.begin() + static_cast<std::ptrdiff_t>(*maker) + 1;
  } else if (kind == OpKind::kLocalSlice && !maker) {
    at = piece_.forward.begin() + slices_of_inputs_++;
  }
  piece_.forward.insert(at, std::move(step));
  return made;
}

size_t Conversions::AllReduce(size_t value, const std::vector<Axis>& axes) {
  const Reduction reduction = piece_.values[value].reduction;
  Require(reduction != Reduction::kNone, piece_.values[value].name + " is never reduced");
  DerivedValue form = SuccessorOf(value, "_part");
  for (Axis axis : axes) form.type.layout.erase(axis);
  const std::string reduce = reduction == Reduction::kMaximum ? "max" : "sum";
  return Emit(OpKind::kAllReduce, {value}, std::move(form), {{"reduce", reduce}},
              axes.size() == 2 ? "tp_cp" : GroupOver(axes.front()), -1);
}

size_t Conversions::ReduceScatter(size_t value, Axis axis, int dim) {
  Require(piece_.values[value].reduction == Reduction::kSum, piece_.values[value].name + " is not summed over ranks");
  DerivedValue form = SuccessorOf(value, "_part");
  Dim& size = form.type.dims[static_cast<size_t>(dim)];
  size = context_.PartOf(size, axis);
  form.type.layout[axis] = {State::kSharded, dim, IsZigzag(axis)};
  return Emit(OpKind::kReduceScatter, {value}, std::move(form), OfCut(dim, IsZigzag(axis)), GroupOver(axis), -1);
}

size_t Conversions::AllGather(size_t value, Axis axis) {
  const AxisLayout cut = *Along(value, axis);
  DerivedValue form = FormOf(value, axis == Axis::kTp ? "_full" : "_all");
  form.type.layout.erase(axis);
  Dim& size = form.type.dims[static_cast<size_t>(cut.dim)];
  const bool counted = std::holds_alternative<std::string>(size);
  size = context_.WholeOf(size, axis);
  if (counted) {
    Require(piece_.counts.has_value(), "the rows of " + form.name + " have no counts");
    return Emit(OpKind::kAllGatherV, {value, *piece_.counts}, std::move(form), {}, GroupOver(axis), pass_++);
  }
  return Emit(OpKind::kAllGather, {value}, std::move(form), OfCut(cut.dim, cut.zigzag), GroupOver(axis), pass_++);
}

size_t Conversions::Reshard(size_t value, int to_dim) {
  const int64_t cp = context_.size(Axis::kCp);
  const AxisLayout cut = *Along(value, Axis::kCp);
  const bool to_positions = to_dim == 0;
  DerivedValue form = to_positions ? FormOf(value, "_local") : SuccessorOf(value, "_local");
  auto& from = std::get<int64_t>(form.type.dims[static_cast<size_t>(cut.dim)]);
  auto& to = std::get<int64_t>(form.type.dims[static_cast<size_t>(to_dim)]);
  from *= cp;
  // The parts of the features where these are whole over cp.
  std::vector<int64_t> segments = {to_positions ? from : to};
  if (!form.segments.empty()) {
    segments = form.segments;
    for (int64_t& segment : segments) segment /= context_.size(Axis::kTp);
  }
  to /= cp;
  form.type.layout[Axis::kCp] = {State::kSharded, to_dim, to_positions && IsZigzag(Axis::kCp)};
  Attributes attributes = {{"from_dim", int64_t{cut.dim}},
                           {"to_dim", int64_t{to_dim}},
                           {"zigzag_dim", int64_t{0}},
                           {"segments", std::move(segments)}};
  return Emit(OpKind::kReshard, {value}, std::move(form), std::move(attributes), GroupOver(Axis::kCp), pass_++);
}

size_t Conversions::Slice(size_t value, Axis axis, int dim) {
  DerivedValue form = FormOf(value, "_local");
  Dim& size = form.type.dims[static_cast<size_t>(dim)];
  size = std::get<int64_t>(size) / context_.size(axis);
  form.type.layout[axis] = {State::kSharded, dim, IsZigzag(axis)};
  Attributes attributes = OfCut(dim, IsZigzag(axis));
  if (axis != Axis::kTp) attributes["axis"] = std::string(AxisName(axis));
  return Emit(OpKind::kLocalSlice, {value}, std::move(form), std::move(attributes), "", pass_++);
}

}  // namespace planwright
