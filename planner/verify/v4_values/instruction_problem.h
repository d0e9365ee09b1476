// V4 of attributes: an instruction has those that its kind needs and no others, each of its type, and each that follows
// from a formula of ops.def is what the module's constants, the batch and the grid make it. And of what else its kind
// alone says: where it may stand, which fields it has, how many values it reads and makes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// What an instruction has that its class does not use: a group of what does not communicate, a frame of what is no
// call. "" if nothing. `in_block`: it stands in a block, which alone has a frame's slots.
std::string StrayField(const Instruction& instruction, bool in_block);

// Where an instruction of its kind has no place: what reads samples, or steps state, in a block; what computes in a
// role's own list. "" if it may stand there.
std::string Misplaced(const Instruction& instruction, bool in_block);

// What is wrong with the values that an instruction without index notation reads and makes, or "": how many they are,
// and which are of state.
std::string ValuesProblem(const Instruction& instruction);

// Keeps a reference: the plan must outlive it. A formula is evaluated once for each kind and module.
class AttributeRules {
 public:
  explicit AttributeRules(const Plan& plan) : plan_(plan) {}

  // What is wrong, or "". `module`: of the block that the instruction stands in; null in a role's own lists, where
  // nothing follows from a module.
  std::string Problem(const Instruction& instruction, const Module* module);

 private:
  struct Expected {
    bool wanted = true;
    std::vector<double> values;  // what it may be; NaN: a constant that the module lacks
  };
  const std::vector<Expected>& ExpectedOf(OpKind kind, const Module& module);
  double ValueOf(const std::string& name, const Module& module) const;

  const Plan& plan_;
  std::map<std::pair<const Module*, OpKind>, std::vector<Expected>> known_;
};

}  // namespace planwright
