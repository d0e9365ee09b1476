// V4 of one instruction by itself: its attributes, fields, list and number of values are those of its kind. The table
// of operations (planner/plan/ops.def) says which these are. What its operands look like is judged in operand_problem.h
// and layout_problem.h.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Each returns what is wrong, or "". `in_block`: the instruction is in a block, and not in a role's own list. Only a
// block runs in a frame, so only there do slots mean something.

// A field that the kind does not use: the group of an instruction that does not communicate, the frame of one that is
// no call.
std::string FieldProblem(const Instruction& instruction, bool in_block);

// Where the kind may not be: what reads samples or steps state, in a block; what computes, in a role's own
// list; what reads, calls or passes values, in a list other than step and evaluate. `list`: of kRoleLists; "": in a
// block. Which instructions on state a list may have is V7's (verify_states.cc).
std::string ListProblem(const Instruction& instruction, std::string_view list);

// For kinds without index notation: how many values it reads and makes, and which of them are state.
std::string ValueCountProblem(const Instruction& instruction);

// Attributes: those that the kind needs and no others, each of its type, and with the value of its formula where
// ops.def gives one. Formulas are over the module's constants, the batch and the grid.
//
// Keeps a reference: the plan must outlive it. A formula is evaluated once for each kind and module.
class AttributeCheck {
 public:
  explicit AttributeCheck(const Plan& plan) : plan_(plan) {}

  // `module`: of the block that the instruction is in. Null in a role's own list, where formulas have no module to
  // read.
  // `evaluates`: of a block of an evaluation.
  std::string Problem(const Instruction& instruction, const Module* module, bool evaluates);

 private:
  struct Expected {
    bool wanted = true;          // false: the attribute must be absent
    std::vector<double> values;  // what it may be; NaN: the formula reads a constant that the module lacks
  };
  const std::vector<Expected>& ExpectedOf(OpKind kind, const Module& module, bool evaluates);
  double ValueOf(const std::string& name, const Module& module, bool evaluates) const;

  const Plan& plan_;
  std::map<std::tuple<const Module*, OpKind, bool>, std::vector<Expected>> expected_;
};

}  // namespace planwright
