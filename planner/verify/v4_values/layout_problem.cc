#include "planner/verify/v4_values/layout_problem.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "planner/plan/expert_ops.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;
using State = AxisLayout::State;

// The index of dim `dim` of an operand with `dims` dims. Leading dims have the indices '0', '1', ...; then come the
// signature's own.
char IndexAt(const OperandSignature& signature, size_t dims, size_t dim) {
  const size_t own = signature.dims.size();
  const size_t leading = signature.leading && dims > own ? dims - own : 0;
  if (dim < leading) return static_cast<char>('0' + dim);
  return dim - leading < own ? signature.dims[dim - leading].index : '_';
}

bool CanBeCut(char index) { return (index >= 'a' && index <= 'z') || (index >= '0' && index <= '7'); }

// The index of the vocabulary, and that of heads whose keys and values are not cut with them.
bool IsByTpCoordinate(char index) { return index == 'v' || index == 'h'; }
const char* FoundBy(char index) { return index == 'v' ? "its part of the vocabulary" : "the keys of its heads"; }

// The first of `dims` dims that has the index.
std::optional<size_t> DimOf(const OperandSignature& signature, size_t dims, char index) {
  for (size_t dim = 0; dim < dims; ++dim) {
    if (IndexAt(signature, dims, dim) == index) return dim;
  }
  return std::nullopt;
}

// One instruction over one axis. The rule is that of sums in index notation. At most one index is cut. An operand that
// has this index must be cut along it, an output that has it is cut along it, and an output that lacks it is a partial
// sum: each rank has summed over its part only. An instruction that is linear in its operands passes partial sums on.
class AxisLayouts {
 public:
  AxisLayouts(const TypedInstruction& typed, const OpSignature& signature, Axis axis)
      : typed_(typed), signature_(signature), axis_(axis), dense_(axis == Axis::kTp || axis == Axis::kCp) {}

  // What is wrong, or "". `gradients`: as in LayoutProblem. First all operands say which index is cut; only then can
  // each be asked whether it fits.
  string Check(std::vector<Held>* gradients) {
    for (size_t i = 0; i < typed_.inputs.size() && problem_.empty(); ++i) ReadInput(i);
    for (size_t i = 0; i < typed_.parameters.size() && problem_.empty(); ++i) {
      ReadSlot(typed_.parameters[i], *OperandAt(signature_.parameters, i), typed_.instruction->parameters[i]);
    }
    for (size_t i = 0; i < typed_.gradients.size() && problem_.empty(); ++i) {
      ReadSlot(typed_.gradients[i], *OperandAt(signature_.gradients, i), typed_.instruction->gradients[i]);
    }
    if (problem_.empty()) CheckTpCoordinate();
    if (problem_.empty()) CheckWholeOperands();
    if (problem_.empty()) CheckPartialOperands();
    for (size_t i = 0; i < typed_.instruction->outputs.size() && problem_.empty(); ++i) CheckOutput(i);
    for (size_t i = 0; i < typed_.gradients.size() && problem_.empty(); ++i) CheckGradient(i, gradients);
    return problem_;
  }

 private:
  string Over() const { return absl::StrCat(" over ", string(AxisName(axis_))); }
  const string& InputName(size_t i) const { return typed_.instruction->inputs[i]; }

  // `who` is cut along a dim of this index.
  void SetCutIndex(char index, bool zigzag, const string& who) {
    if (!CanBeCut(index)) {
      problem_ = absl::StrCat("needs all of the dim along which ", who, " is cut", Over());
    } else if (index == 's' && axis_ != Axis::kCp) {
      // Index 's': the operation must know which positions it has, and only the cp coordinate tells it.
      problem_ = absl::StrCat("needs the positions of ", who, ", which is cut", Over(), " and not over cp");
    } else if (IsByTpCoordinate(index) && axis_ != Axis::kTp) {
      problem_ = absl::StrCat("finds ", FoundBy(index), " by the tp coordinate, but ", who, " is cut", Over());
    } else if (cut_ == 0) {
      cut_ = index, zigzag_ = zigzag, cutter_ = who;
    } else if (cut_ != index) {
      problem_ = absl::StrCat(cutter_, " and ", who, " are cut along different dims", Over());
    } else if (zigzag_ != zigzag) {
      problem_ = absl::StrCat(cutter_, " and ", who, " are cut", Over(), ", only one of them in zigzag order");
    }
  }

  void ReadInput(size_t i) {
    const OperandSignature& operand = *OperandAt(signature_.inputs, i);
    const ValueType& type = *typed_.inputs[i];
    const Held held = HeldOver(type, axis_);
    if (IsPieceOfGather(operand)) return CheckDispatchedRows(held, operand, InputName(i));
    // Row counts and the order of rows are a rank's own. They have no layout that could be compared.
    if (operand.of_rank && operand.dtype == OperandSignature::DTypeClass::kInt64) return;
    if (operand.of_rank && dense_) {
      if (held.state != State::kReplicated)
        problem_ = absl::StrCat(InputName(i), " is ", HeldText(held), Over(), ", but its rows belong to their rank");
      reads_rows_of_rank_ = true;
      return;
    }
    if (DimOf(operand, type.dims.size(), 't')) reads_tokens_ = true;
    if (held.state == State::kSharded) {
      SetCutIndex(IndexAt(operand, type.dims.size(), static_cast<size_t>(held.dim)), held.zigzag, InputName(i));
    }
    if (held.state == State::kPartial) {
      if (!operand.linear)
        problem_ = absl::StrCat(InputName(i), " is a partial sum", Over(), " and must be summed first");
      ++partial_inputs_;
    }
  }

  // Behind the token dispatch a rank's rows are pieces of what its expert_tp group gathers, except inside the experts,
  // which read what was gathered.
  bool IsPieceOfGather(const OperandSignature& operand) const {
    return axis_ == Axis::kExpertTp && operand.of_rank && !UsesExpertWeights(typed_.instruction->kind);
  }

  void CheckDispatchedRows(const Held& held, const OperandSignature& operand, const string& name) {
    // Integers are the order of the rows, which is each rank's own; others are the rows.
    const bool order = operand.dtype == OperandSignature::DTypeClass::kInt64;
    const Held wanted = order ? Held{} : Held{State::kSharded, 0, false};
    if (held != wanted)
      problem_ = absl::StrCat("needs ", name, " ", HeldText(wanted), Over(), ", not ", HeldText(held));
  }

  void ReadSlot(const Slot& slot, const OperandSignature& operand, const string& name) {
    if (slot.dim < 0 || slot.axis != axis_) return;
    SetCutIndex(IndexAt(operand, slot.storage->shape.size(), static_cast<size_t>(slot.dim)), false,
                absl::StrCat("parameter ", name));
  }

  // Indices 'v' and 'h': rank r of tp has the r-th part of the vocabulary or of the heads, whatever its operands are.
  void CheckTpCoordinate() {
    if (axis_ != Axis::kTp || IsByTpCoordinate(cut_)) return;
    for (const auto* list : {&signature_.inputs, &signature_.parameters, &signature_.gradients}) {
      for (const OperandSignature& operand : *list) {
        for (const SignatureDim& dim : operand.dims) {
          if (!IsByTpCoordinate(dim.index)) continue;
          problem_ = absl::StrCat("finds ", FoundBy(dim.index), " by the tp coordinate, but ",
                                  dim.index == 'v' ? "the vocabulary is" : "its heads are", " not cut over tp");
        }
      }
    }
  }

  // What has the cut index must be cut: a rank cannot multiply its part by the whole.
  void CheckWholeOperands() {
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
        // Along cp no weight is cut. A rank uses the part that belongs to its heads, where the kind does so.
        const bool part = axis_ == Axis::kCp && InfoOf(typed_.instruction->kind).cp_by_features;
        if (!has || (slots[i].dim >= 0 && slots[i].axis == axis_) || part) continue;
        problem_ =
            absl::StrCat("parameter ", names[i], " is whole", Over(), ", but ", cutter_, " is cut along the same dim");
      }
    };
    weights(typed_.parameters, signature_.parameters, typed_.instruction->parameters);
    if (problem_.empty()) weights(typed_.gradients, signature_.gradients, typed_.instruction->gradients);
  }

  void CheckPartialOperands() {
    if (partial_inputs_ == 0) return;
    const OpKind kind = typed_.instruction->kind;
    const bool sums = kind == OpKind::kAdd || kind == OpKind::kAddLinear || kind == OpKind::kConcat ||
                      kind == OpKind::kSplit || kind == OpKind::kJoinFeatures || kind == OpKind::kSplitFeaturesGrad;
    if (sums && partial_inputs_ != typed_.inputs.size()) {
      problem_ = absl::StrCat("joins ", partial_inputs_, " partial sums", Over(), " with ",
                              typed_.inputs.size() - partial_inputs_, " values that are whole sums");
    } else if (!sums && partial_inputs_ > 1) {
      problem_ = absl::StrCat("reads several partial sums", Over(), ": their product is no term of a sum");
    } else if (cut_ != 0) {
      problem_ = absl::StrCat("takes a partial sum", Over(), " beside ", cutter_, ", which is cut");
    } else if (kind == OpKind::kLinear && typed_.parameters.size() > 1) {
      problem_ = kBiasInEveryTerm + Over();
    }
  }

  // What the ranks hold of an output, or add to a gradient, of `dims` dims.
  Held Expected(const OperandSignature& operand, size_t dims) const {
    if (partial_inputs_ > 0) return {State::kPartial};
    if (cut_ == 0) return {};
    if (const auto dim = DimOf(operand, dims, cut_)) return {State::kSharded, static_cast<int>(*dim), zigzag_};
    return {State::kPartial};
  }

  void CheckOutput(size_t i) {
    const Output& output = typed_.instruction->outputs[i];
    const OperandSignature& operand = *OperandAt(signature_.outputs, i);
    const Held held = HeldOver(output.type, axis_);
    if (IsPieceOfGather(operand)) return CheckDispatchedRows(held, operand, output.name);
    Held expected;
    if (operand.of_rank && dense_) {
      if (reads_tokens_ && cut_ == 0) {
        problem_ =
            absl::StrCat("dispatches tokens that are whole", Over(), ": experts would compute each more than once");
        return;
      }
    } else if (reads_rows_of_rank_ && !operand.of_rank && cut_ == 0) {
      // Back from the token dispatch: each rank gets its own tokens again, in the order in which it sent them.
      const auto dim = DimOf(operand, output.type.dims.size(), 't');
      expected = {State::kSharded, static_cast<int>(dim.value_or(0)), held.zigzag};
    } else {
      expected = Expected(operand, output.type.dims.size());
      if (typed_.instruction->kind == OpKind::kLinear && typed_.parameters.size() > 1 &&
          expected.state == State::kPartial) {
        problem_ = kBiasInEveryTerm + Over();
        return;
      }
    }
    if (held == expected) return;
    problem_ = absl::StrCat("makes ", output.name, ", which is ", HeldText(expected), Over(), ", as ", HeldText(held));
  }

  void CheckGradient(size_t i, std::vector<Held>* gradients) {
    const Slot& slot = typed_.gradients[i];
    Held added;
    if (slot.storage) added = Expected(*OperandAt(signature_.gradients, i), slot.storage->shape.size());
    // Along cp a rank adds to its part of a weight that is whole, and nothing to the rest.
    if (axis_ == Axis::kCp && added.state == State::kSharded) added = {State::kPartial};
    // Each rank has other rows behind the token dispatch, so it adds a term of its own.
    if (reads_rows_of_rank_ && dense_) added = {State::kPartial};
    if (gradients) gradients->push_back(added);
    const bool cut = slot.dim >= 0 && slot.axis == axis_;
    if (cut != (added.state == State::kSharded)) {
      problem_ = absl::StrCat("adds to the gradient of ", typed_.instruction->gradients[i], " what is ",
                              HeldText(added), Over(), ", but the parameter is ", cut ? "cut" : "whole");
    }
  }

  static constexpr const char* kBiasInEveryTerm = "adds its bias to every term of the partial sum";

  const TypedInstruction& typed_;
  const OpSignature& signature_;
  const Axis axis_;
  const bool dense_;                 // the axis is one of the dense view
  char cut_ = 0;                     // the index that is cut over the axis; 0: none
  bool zigzag_ = false;              // of the cut index
  string cutter_;                    // the operand that set it, for messages
  bool reads_rows_of_rank_ = false;  // some input is behind the token dispatch
  bool reads_tokens_ = false;        // some input has tokens of the sequence
  size_t partial_inputs_ = 0;
  string problem_;
};

}  // namespace

string LayoutProblem(const TypedInstruction& typed, Axis axis, std::vector<Held>* gradients) {
  const OpSignature* signature = SignatureOf(*typed.instruction);
  if (!signature) return "";
  return AxisLayouts(typed, *signature, axis).Check(gradients);
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
