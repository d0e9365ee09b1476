#include "planner/compile/schedule/derive/transposed_conversion.h"

#include <string>
#include <utility>

#include "planner/base/text/bug.h"
#include "planner/compile/schedule/derive/conversions.h"

namespace planwright {
namespace {

// The axis of a group over one axis.
Axis AxisOfGroup(const std::string& group) {
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kExpertTp, Axis::kEp}) {
    if (GroupOver(axis) == group) return axis;
  }
  Bug("no conversion is over the group " + group);
}

// all_gather and all_gather_v. Where each rank has made all of the gradient, it keeps its part; where it has made a
// term, terms are summed.
void TransposeGather(const DerivedPiece& piece, size_t gradient, DerivedStep& step) {
  const Axis axis = AxisOfGroup(step.group);
  const bool counted = step.kind == OpKind::kAllGatherV;
  const Layout& layout = piece.type(gradient).layout;
  if (const auto along = layout.find(axis); along != layout.end()) {
    step.kind = counted ? OpKind::kReduceScatterV : OpKind::kReduceScatter;
    return;
  }
  step.kind = counted ? OpKind::kSliceRows : OpKind::kLocalSlice;
  step.group.clear();
  if (counted || axis != Axis::kTp) step.attributes["axis"] = std::string(AxisName(axis));
}

void TransposeSlice(DerivedStep& step) {
  step.kind = OpKind::kAllGather;
  step.group = GroupOver(Axis::kTp);
  const auto axis = step.attributes.find("axis");
  if (axis == step.attributes.end()) return;
  step.group = GroupOver(*AxisFromName(std::get<std::string>(axis->second)));
  step.attributes.erase(axis);
}

}  // namespace

DerivedStep TransposeOf(const DerivedPiece& piece, const DerivedStep& forward,
                        const std::vector<std::optional<size_t>>& gradients) {
  DerivedStep step = forward;
  step.outputs.clear();
  step.inputs.front() = *gradients.front();
  switch (forward.kind) {
    case OpKind::kAllGather:
    case OpKind::kAllGatherV: TransposeGather(piece, *gradients.front(), step); break;
    case OpKind::kReduceScatter: step.kind = OpKind::kAllGather; break;
    case OpKind::kReduceScatterV: step.kind = OpKind::kAllGatherV; break;
    case OpKind::kGatherTokens: step.kind = OpKind::kScatterTokens; break;
    case OpKind::kScatterTokens: step.kind = OpKind::kGatherTokens; break;
    case OpKind::kAllToAllV: std::swap(step.inputs[1], step.inputs[2]); break;
    case OpKind::kReshard: std::swap(step.attributes["from_dim"], step.attributes["to_dim"]); break;
    case OpKind::kLocalSlice: TransposeSlice(step); break;
    case OpKind::kSplit:
      step.kind = OpKind::kConcat;
      step.inputs.clear();
      for (const std::optional<size_t>& gradient : gradients) {
        Require(gradient.has_value(), "a part of a split value has no gradient");
        step.inputs.push_back(*gradient);
      }
      break;
    default: Bug("no transpose of " + std::string(OpName(forward.kind)));
  }
  return step;
}

}  // namespace planwright
