// A forward block as its backward must transpose it: the gradient of every value as the sum of one term from each use.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/verify/shared/plan_index.h"

namespace planwright {

// A use of a forward value that adds to its gradient: an operand of an instruction (its index and place), or an output
// of the block (-1, j).
using Term = std::pair<int, int>;
using Terms = std::vector<Term>;  // sorted; a term twice is counted twice

// The terms of a sum of two gradients.
Terms Joined(Terms a, const Terms& b);

// Keeps references: index and block must outlive it.
class ForwardBlock {
 public:
  ForwardBlock(const PlanIndex& index, const Block& block);

  const Block& block() const { return block_; }
  const Instruction& at(int i) const { return block_.body[static_cast<size_t>(i)]; }
  // Of an input or an inner value; null: there is none of this name.
  const ValueType* type(const std::string& name) const;
  // All terms of the gradient of a value.
  const Terms& GradientOf(const std::string& name);
  // Whether operand `place` of a call takes a gradient.
  bool TakesGradient(const Instruction& call, size_t place) const;
  // For messages: "linear of x".
  std::string Text(const Term& term) const;

 private:
  const PlanIndex& index_;
  const Block& block_;
  std::map<std::string, Terms> uses_;
  std::map<std::string, std::vector<int>> outputs_;
  std::map<std::string, const ValueType*> types_;
  std::map<std::string, Terms> gradients_;
};

}  // namespace planwright
