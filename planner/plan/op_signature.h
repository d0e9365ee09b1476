// The operands of compute instructions in index notation, and those of backward kinds in terms of their forward. The
// head of ops.def describes both notations.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/instruction.h"
#include "planner/plan/table_text.h"

namespace planwright {

// One dim of an operand: "t", "f2", "_", "16", "(tBK)".
struct SignatureDim {
  // The index. Dims of one index are cut together. 'a' to 'z': may be cut over an axis; others: whole on every rank.
  char index = 0;
  std::string name;                  // dims of one name have one size; empty: not compared
  int64_t number = -1;               // a literal size; -1: none
  std::vector<std::string> factors;  // a product of named sizes; empty: none
};

// How ranks may reduce a value that is partial: a term of a sum.
enum class Reduction {
  kSum,
  kMaximum,        // mark ^: the maxima of parts of the vocabulary. A sum of them means nothing
  kNone,           // mark #: it is relative to such a maximum, and ranks have different ones
  kScatterTokens,  // terms for the tokens of all ep ranks. No layout says over ep what is such a term
};

struct OperandSignature {
  enum class DTypeClass { kPlan, kWide, kInt64, kFp64 };  // kPlan: the plan's precision; kWide: fp32 at least
  DTypeClass dtype = DTypeClass::kPlan;
  bool linear = false;                    // may be a partial sum over an axis: the operation is linear in it
  bool of_rank = false;                   // rows behind the token dispatch, which belong to their rank
  Reduction reduction = Reduction::kSum;  // of outputs
  bool optional = false;
  std::string with;  // attribute with which an optional operand is present; empty: present or not, as it likes
  bool repeats = false;
  bool leading = false;  // any leading dims before `dims`
  std::vector<SignatureDim> dims;
};

struct OpSignature {
  std::vector<OperandSignature> inputs, parameters, gradients, outputs;
};

// An operand or result of a backward instruction, named by its index in the forward one: in ops.def i0, o1, do0, di2.
struct GradientOperand {
  enum class Kind { kInput, kOutput, kOutputGradient, kInputGradient };
  Kind kind{};
  size_t index = 0;
  size_t link = 0;  // of which instruction of the chain
  int part = -1;    // of a gradient that is joined from parts: its index among them; -1: it is whole
};

// One line `transposes` of a backward kind.
struct GradientRule {
  // What it differentiates: one forward kind, or a chain of them, each of which reads an output of the one before.
  struct Link {
    OpKind kind{};
    bool optional = false;
  };
  std::vector<Link> chain;
  bool over_cp = false;  // for instructions whose attribute cp is above 1
  std::vector<GradientOperand> operands, results;

  OpKind forward() const { return chain.front().kind; }
  bool starts_gradient() const;  // it reads no gradient: its chain ends in the loss
};

// Each reads the rest of the line.
OpSignature TakeSignature(LineReader& line);
GradientRule TakeGradientRule(LineReader& line);

// The signature of operand `i`, or null if there is none. The last signature of a list may repeat.
const OperandSignature* OperandAt(const std::vector<OperandSignature>& list, size_t i);

// Whether an instruction may have `count` operands of this list.
bool CountFits(const std::vector<OperandSignature>& list, size_t count, const Instruction& instruction);

}  // namespace planwright
