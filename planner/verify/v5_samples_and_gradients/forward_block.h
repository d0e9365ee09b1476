// A forward block, as its backward must be the transpose of it: the gradient of every value is the sum of one term from
// each use of the value.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/verify/shared/plan_index.h"

namespace planwright {

// A use of a forward value that adds to its gradient: an instruction of the block and the index among its inputs, or
// {-1, j} for output j of the block, whose gradient comes from outside.
using Term = std::pair<int, int>;
using Terms = std::vector<Term>;  // sorted; a term that is twice in it is counted twice

// The terms of the sum of two gradients.
Terms Joined(Terms a, const Terms& b);

// Keeps references: index and block must outlive it.
class ForwardBlock {
 public:
  // `alone`: it has no backward. Then gradients are followed as if all that it returns took one.
  ForwardBlock(const PlanIndex& index, const Block& block, bool alone = false);

  const Block& block() const { return block_; }
  const Instruction& at(int i) const { return block_.body[static_cast<size_t>(i)]; }
  // The type of an input or of an inner value; null: there is none of this name.
  const ValueType* type(const std::string& name) const;
  // All terms of the gradient of a value. What only moves, cuts, joins or adds values passes the gradient on, so the
  // terms are those of the computes behind it.
  const Terms& GradientOf(const std::string& name);
  // Whether a value has a gradient: something reads it that gives one, and it was made with a weight or of a value that
  // takes one. What is made of pixels alone has none.
  bool HasGradient(const std::string& name) { return Learns(name) && !GradientOf(name).empty(); }
  // The order of these terms in a sum: that of the first of them. A walk from the outputs of the block back to its
  // inputs, operand by operand, meets the uses of values in this order, whatever the order of the body is. Terms that
  // lead to no output come last.
  int OrderInSums(const Terms& terms);
  // The dtype of the gradient of a value of this type: its own. Except of a term that scatter_tokens sums, which is
  // wider than the sum: the gradient comes from the sum.
  DType GradientDType(const std::string& name, const ValueType& type) const;
  // Whether `input`, an index among those of a call, takes a gradient.
  bool TakesGradient(const Instruction& call, size_t input) const;
  // Whether the block has this instruction: same kind, values, slots, attributes, group and types.
  bool Repeats(const Instruction& op) const;
  // What an all_reduce of the block made value `name` of; `name` itself if none did.
  const std::string& Unreduced(const std::string& name) const;
  // The first value that `other` takes as another type than this block saved; null: none.
  const Output* TakenAsOtherType(const Block& other) const;
  // For messages: "linear of x".
  std::string Text(const Term& term) const;

 private:
  void WalkFromOutputs();
  bool Learns(const std::string& name);

  const PlanIndex& index_;
  const Block& block_;
  const bool alone_;
  std::map<std::string, Terms> uses_;                // by value: instructions that read it
  std::map<std::string, std::vector<int>> outputs_;  // by value: outputs of the block that it is
  std::map<std::string, const ValueType*> types_;
  std::map<std::string, std::string> reduced_from_;
  std::map<std::string, Terms> gradients_;  // those that were asked for
  std::map<std::string, int> makers_;       // by value: the instruction of the block that makes it
  std::map<std::string, bool> learns_;      // those that were asked for
  std::map<Term, int> orders_;              // in sums; empty: not asked for yet
};

}  // namespace planwright
