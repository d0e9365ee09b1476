// The operands of compute instructions in index notation, read from the table of operations. The notation is described
// at the head of planner/plan/ops.def.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// One dim of an operand: "t", "f2", "_", "16", "(tBK)".
struct SignatureDim {
  // The index. Dims of one index are cut together. 'a' to 'z': may be cut over an axis; others: whole on every rank.
  char index = 0;
  std::string name;                  // dims of one name have one size; empty: not compared
  int64_t number = -1;               // a literal size; -1: none
  std::vector<std::string> factors;  // a product of named sizes; empty: none
};

struct OperandSignature {
  enum class DTypeClass { kPlan, kWide, kInt64, kFp64 };  // kPlan: the plan's precision; kWide: fp32 at least
  DTypeClass dtype = DTypeClass::kPlan;
  bool linear = false;   // may be a partial sum over an axis: the operation is linear in it
  bool of_rank = false;  // rows behind the token dispatch, which belong to their rank
  bool optional = false;
  std::string with;  // attribute with which an optional operand is present; empty: present or not, as it likes
  bool repeats = false;
  bool leading = false;  // any leading dims before `dims`
  std::vector<SignatureDim> dims;
};

struct OpSignature {
  std::vector<OperandSignature> inputs, parameters, gradients, outputs;
};

// Reads the text of a line `operands`.
OpSignature ParseSignature(std::string_view text);

// Null: the kind is no compute instruction, or it is local_slice, which only changes the layout of a value.
const OpSignature* SignatureOf(const Instruction& instruction);

// The signature of operand `i`, or null if there is none. The last signature of a list may repeat.
const OperandSignature* OperandAt(const std::vector<OperandSignature>& list, size_t i);

// Whether an instruction may have `count` operands of this list.
bool CountFits(const std::vector<OperandSignature>& list, size_t count, const Instruction& instruction);

}  // namespace planwright
