#include "planner/verify/v4_values/layout_problem.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/verify/shared/op_signature.h"

namespace planwright {
namespace {

using std::string;
using State = AxisLayout::State;

// The index of dim `dim` of an operand of `rank` dims: leading dims count from 0, then the signature's own.
char IndexAt(const OperandSignature& signature, size_t rank, size_t dim) {
  const size_t own = signature.dims.size();
  const size_t leading = signature.leading && rank > own ? rank - own : 0;
  if (dim < leading) return static_cast<char>('0' + dim);
  return dim - leading < own ? signature.dims[dim - leading].index : '_';
}

bool CanBeCut(char index) { return (index >= 'a' && index <= 'z') || (index >= '0' && index <= '7'); }

std::optional<size_t> DimOf(const OperandSignature& signature, size_t rank, char index) {
  for (size_t dim = 0; dim < rank; ++dim) {
    if (IndexAt(signature, rank, dim) == index) return dim;
  }
  return std::nullopt;
}

// One axis of one instruction: which index is cut over it, and which operands are partial sums.
class AxisRule {
 public:
  AxisRule(const TypedInstruction& typed, const OpSignature& signature, Axis axis)
      : typed_(typed), signature_(signature), axis_(axis), dense_(axis == Axis::kTp || axis == Axis::kCp) {}

  string Check(std::vector<Held>* gradients) {
    for (size_t i = 0; i < typed_.inputs.size() && problem_.empty(); ++i) Input(i);
    for (size_t i = 0; i < typed_.parameters.size() && problem_.empty(); ++i) {
      Weight(typed_.parameters[i], *OperandAt(signature_.parameters, i), typed_.instruction->parameters[i]);
    }
    for (size_t i = 0; i < typed_.gradients.size() && problem_.empty(); ++i) {
      Weight(typed_.gradients[i], *OperandAt(signature_.gradients, i), typed_.instruction->gradients[i]);
    }
    if (problem_.empty()) WholeOperands();
    if (problem_.empty()) PartialOperands();
    for (size_t i = 0; i < typed_.instruction->outputs.size() && problem_.empty(); ++i) CheckOutput(i);
    for (size_t i = 0; i < typed_.gradients.size() && problem_.empty(); ++i) Gradient(i, gradients);
    return problem_;
  }

 private:
  string Over() const { return absl::StrCat(" over ", string(AxisName(axis_))); }
  const string& InputName(size_t i) const { return typed_.instruction->inputs[i]; }

  void CutIndex(char index, bool zigzag, const string& who) {
    if (!CanBeCut(index)) {
      problem_ = absl::StrCat("needs all of the dim along which ", who, " is cut", Over());
    } else if (index == 's' && axis_ != Axis::kCp) {
      problem_ = absl::StrCat("must know the positions of ", who, ", which is cut", Over());
    } else if (cut_ == 0) {
      cut_ = index, zigzag_ = zigzag, cutter_ = who;
    } else if (cut_ != index) {
      problem_ = absl::StrCat(cutter_, " and ", who, " are cut along dims that do not belong together", Over());
    } else if (zigzag_ != zigzag) {
      problem_ = absl::StrCat(cutter_, " and ", who, " are cut in different orders", Over());
    }
  }

  void Input(size_t i) {
    const OperandSignature& operand = *OperandAt(signature_.inputs, i);
    const ValueType& type = *typed_.inputs[i];
    const Held held = HeldOver(type, axis_);
    if (Dispatched(operand)) return Pieces(held, operand, InputName(i));
    // a rank's own counts and order, whatever they add up to
    if (operand.of_rank && operand.dtype == OperandSignature::Kind::kInt64) return;
    if (operand.of_rank && dense_) {
      if (held.state != State::kReplicated)
        problem_ = absl::StrCat(InputName(i), " has a layout", Over(), ", but its rows belong to their rank");
      of_rank_ = true;
      return;
    }
    if (DimOf(operand, type.dims.size(), 't')) has_tokens_ = true;
    if (held.state == State::kSharded) {
      CutIndex(IndexAt(operand, type.dims.size(), static_cast<size_t>(held.dim)), held.zigzag, InputName(i));
    }
    if (held.state == State::kPartial) {
      if (!operand.linear)
        problem_ = absl::StrCat(InputName(i), " is a partial sum", Over(), " and must be summed first");
      ++partial_;
    }
  }

  // Outside the experts, rows of a rank are pieces of what its expert_tp group gathers.
  bool Dispatched(const OperandSignature& operand) const {
    const OpKind kind = typed_.instruction->kind;
    return axis_ == Axis::kExpertTp && operand.of_rank && kind != OpKind::kExperts && kind != OpKind::kExpertsGrad;
  }

  void Pieces(const Held& held, const OperandSignature& operand, const string& name) {
    const bool order = operand.dtype == OperandSignature::Kind::kInt64;  // of the rows, of no layout
    if (order && held != Held{}) problem_ = absl::StrCat("needs ", name, " of no layout", Over());
    if (order) return;
    if (held != Held{State::kSharded, 0, false})
      problem_ = absl::StrCat("needs ", name, " in pieces along dim 0", Over());
  }

  void Weight(const Slot& slot, const OperandSignature& operand, const string& name) {
    if (slot.dim < 0 || slot.axis != axis_) return;
    CutIndex(IndexAt(operand, slot.storage->shape.size(), static_cast<size_t>(slot.dim)), false,
             absl::StrCat("parameter ", name));
  }

  // What has the cut index must be cut.
  void WholeOperands() {
    if (cut_ == 0) return;
    for (size_t i = 0; i < typed_.inputs.size(); ++i) {
      const OperandSignature& operand = *OperandAt(signature_.inputs, i);
      if (operand.of_rank && dense_) continue;
      if (HeldOver(*typed_.inputs[i], axis_).state == State::kSharded ||
          !DimOf(operand, typed_.inputs[i]->dims.size(), cut_))
        continue;
      problem_ = absl::StrCat(InputName(i), " is ", HeldText(HeldOver(*typed_.inputs[i], axis_)), Over(), ", but ",
                              cutter_, " is cut along the same dim");
      return;
    }
    const auto weights = [&](const std::vector<Slot>& slots, const std::vector<OperandSignature>& list,
                             const std::vector<string>& names) {
      for (size_t i = 0; i < slots.size(); ++i) {
        const bool has = slots[i].storage && DimOf(*OperandAt(list, i), slots[i].storage->shape.size(), cut_);
        // Along cp no weight is cut: a rank uses the part of a per-head weight that belongs to its heads.
        if (!has || (slots[i].dim >= 0 && slots[i].axis == axis_) || axis_ == Axis::kCp) continue;
        problem_ =
            absl::StrCat("parameter ", names[i], " is whole", Over(), ", but ", cutter_, " is cut along the same dim");
      }
    };
    weights(typed_.parameters, signature_.parameters, typed_.instruction->parameters);
    if (problem_.empty()) weights(typed_.gradients, signature_.gradients, typed_.instruction->gradients);
  }

  void PartialOperands() {
    if (partial_ == 0) return;
    const OpKind kind = typed_.instruction->kind;
    const bool sums = kind == OpKind::kAdd || kind == OpKind::kConcat || kind == OpKind::kSplit;
    if (sums && partial_ != typed_.inputs.size()) {
      problem_ = absl::StrCat("joins partial sums", Over(), " with values that are not");
    } else if (!sums && partial_ > 1) {
      problem_ = absl::StrCat("multiplies partial sums", Over());
    } else if (cut_ != 0) {
      problem_ = absl::StrCat("takes a partial sum", Over(), " beside ", cutter_, ", which is cut");
    } else if (kind == OpKind::kLinear && typed_.parameters.size() > 1) {
      problem_ = absl::StrCat("adds its bias to every term of a sum", Over());
    }
  }

  Held Expected(const OperandSignature& operand, size_t rank) const {
    if (partial_ > 0) return {State::kPartial};
    if (cut_ == 0) return {};
    if (const auto dim = DimOf(operand, rank, cut_)) return {State::kSharded, static_cast<int>(*dim), zigzag_};
    return {State::kPartial};
  }

  void CheckOutput(size_t i) {
    const Output& output = typed_.instruction->outputs[i];
    const OperandSignature& operand = *OperandAt(signature_.outputs, i);
    const Held held = HeldOver(output.type, axis_);
    if (Dispatched(operand)) return Pieces(held, operand, output.name);
    Held expected;
    if (operand.of_rank && dense_) {
      if (has_tokens_ && cut_ == 0) {
        problem_ =
            absl::StrCat("dispatches tokens that every rank", Over(), " has: each would be computed more than once");
        return;
      }
    } else if (of_rank_ && !operand.of_rank && cut_ == 0) {
      // Back from the dispatch: each rank gets its own tokens again.
      const auto dim = DimOf(operand, output.type.dims.size(), 't');
      expected = {State::kSharded, static_cast<int>(dim.value_or(0)), held.zigzag};
    } else {
      expected = Expected(operand, output.type.dims.size());
      if (typed_.instruction->kind == OpKind::kLinear && typed_.parameters.size() > 1 &&
          expected.state == State::kPartial) {
        problem_ = absl::StrCat("adds its bias to every term of a sum", Over());
        return;
      }
    }
    if (held == expected) return;
    problem_ = absl::StrCat("makes ", output.name, " that is ", HeldText(expected), Over(), ", not ", HeldText(held));
  }

  void Gradient(size_t i, std::vector<Held>* gradients) {
    const Slot& slot = typed_.gradients[i];
    Held added;
    if (slot.storage) added = Expected(*OperandAt(signature_.gradients, i), slot.storage->shape.size());
    // the rest of the whole weight gets nothing
    if (axis_ == Axis::kCp && added.state == State::kSharded) added = {State::kPartial};
    // Rows that belong to their rank: each rank adds its own rows' part.
    if (of_rank_ && dense_) added = {State::kPartial};
    if (gradients) gradients->push_back(added);
    const bool cut = slot.dim >= 0 && slot.axis == axis_;
    if (cut != (added.state == State::kSharded)) {
      problem_ = absl::StrCat("adds to gradient ", typed_.instruction->gradients[i], " what is ", HeldText(added),
                              Over(), ", but the parameter is ", cut ? "cut" : "whole");
    }
  }

  const TypedInstruction& typed_;
  const OpSignature& signature_;
  const Axis axis_;
  const bool dense_;
  char cut_ = 0;
  bool zigzag_ = false, of_rank_ = false, has_tokens_ = false;
  string cutter_, problem_;
  size_t partial_ = 0;
};

}  // namespace

string LayoutProblem(const TypedInstruction& typed, Axis axis, std::vector<Held>* gradients) {
  const OpSignature* signature = SignatureOf(*typed.instruction);
  if (!signature) return "";
  return AxisRule(typed, *signature, axis).Check(gradients);
}

string GradientLayoutProblem(const ValueType& type, Axis axis) {
  if (!type.gradient) return "";
  const Held value = HeldOver(type.layout, axis), gradient = HeldOver(*type.gradient, axis);
  const bool fits = value.state == State::kSharded   ? gradient == value
                    : value.state == State::kPartial ? gradient.state == State::kReplicated
                                                     : gradient.state != State::kSharded;
  if (fits) return "";
  return absl::StrCat("is ", HeldText(value), " over ", string(AxisName(axis)), ", but its gradient is ",
                      HeldText(gradient));
}

}  // namespace planwright
