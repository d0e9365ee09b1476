// The operands of compute instructions in index notation, as the table of operations (ops.def) has them.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// One dim of an operand.
struct DimIndex {
  char index = 0;                    // 't': may be cut. 'T', '_', digits: whole on every rank of an axis
  std::string name;                  // dims of one name have one size; empty: not compared
  int64_t number = -1;               // a literal size
  std::vector<std::string> factors;  // a product of named sizes

  bool can_be_cut() const { return index >= 'a' && index <= 'z'; }
};

struct OperandSignature {
  enum class Kind { kPlan, kWide, kInt64, kFp64 };
  Kind dtype = Kind::kPlan;
  bool linear = false;   // may be a partial sum over an axis
  bool of_rank = false;  // rows behind the token dispatch
  bool optional = false;
  std::string with;  // of an optional one: it is there where the instruction has this attribute
  bool repeats = false;
  bool leading = false;  // any leading dims before `dims`
  std::vector<DimIndex> dims;
};

struct OpSignature {
  std::vector<OperandSignature> inputs, parameters, gradients, outputs;
};

// Null for kinds that are no compute instruction, and for local_slice, which is a change of layout.
const OpSignature* SignatureOf(const Instruction& instruction);

// The signature of operand `i` of a list of `count` operands, or null if there is none: the last may repeat.
const OperandSignature* OperandAt(const std::vector<OperandSignature>& list, size_t i);

// Whether `count` operands fit the list of an instruction.
bool CountFits(const std::vector<OperandSignature>& list, size_t count, const Instruction& instruction);

}  // namespace planwright
