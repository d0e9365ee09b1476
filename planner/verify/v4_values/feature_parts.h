// V4 of what features are made of. A dim that joins parts (q | k | v of attention, z | x | B | C | dt of Mamba) is cut
// part by part, so what a rank has are its parts of each. Sizes and layouts do not show that: cut as one, or in other
// parts, the same dim has the same size on every rank, and other features. So the parts follow from what makes a value,
// and what reads it must mean the same ones (`parts` in planner/plan/ops.def):
//
//   - a parameter's segments are the parts of the operation that reads it;
//   - the output of a linear has the segments of its weight, and the operation that reads it has those parts;
//   - a reshard cuts what it moves in the parts that this has;
//   - what is joined and taken apart by concat and split keeps the parts in order.
//
// A dim of one part may be joined and cut as one. A dim that no axis can cut may be made of any parts, and a part of no
// features (the heads of keys, where queries are by themselves) is none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/op_table.h"
#include "planner/verify/shared/typed_instruction.h"

namespace planwright {

// Follows one block from its begin to its end. A block's inputs and the values that it takes are in the order that
// their makers gave them, which is not known here: of these only what is read with them is compared. A backward reads
// the values of its forward (V5).
class FeatureParts {
 public:
  explicit FeatureParts(const Module& module) : module_(module) {}

  // What is wrong with an instruction whose sizes and layouts are sound, or "". Notes the parts of what it makes.
  std::string Problem(const TypedInstruction& typed);

 private:
  using Parts = std::vector<int64_t>;  // sizes on this rank, in order

  // The parts of the dims of one name in an instruction. None: any.
  struct Wanted {
    std::optional<Parts> parts;
    bool more = false;  // others may follow
  };
  Wanted WantedOf(const TypedInstruction& typed, const OpSignature& signature, const SignatureDim& dim,
                  int64_t size) const;
  std::string SlotsProblem(const TypedInstruction& typed, const OpSignature& signature) const;
  std::string ComputeProblem(const TypedInstruction& typed, const OpSignature& signature);
  std::string AddedProblem(const TypedInstruction& typed) const;
  std::string ConcatProblem(const TypedInstruction& typed);
  std::string SplitProblem(const TypedInstruction& typed);
  std::string ReshardProblem(const TypedInstruction& typed);
  std::string MoveProblem(const TypedInstruction& typed);

  // The segments of a parameter as the instruction uses them, on this rank; none: no axis cuts it.
  std::optional<Parts> SegmentsOf(const Slot& slot, const Instruction& op) const;
  const Parts* Find(const std::string& value) const;
  void Note(const std::string& value, std::optional<Parts> parts);

  const Module& module_;
  std::map<std::string, Parts> parts_;  // by value: of its last dim. A value that is not there may have any
};

}  // namespace planwright
