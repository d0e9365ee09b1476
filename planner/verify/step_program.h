// A role's step as the rules of its end see it: the instructions in order, with the blocks opened whose inner order matters, and where calls,
// sums and collectives of buckets stand.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/verify/happens_before.h"
#include "planner/verify/plan_index.h"

namespace planwright {

using Places = std::vector<int>;

// The value that an instruction of state moves: "%language.gradients.0"; "nothing" where there is none.
std::string Subject(const Instruction& op);
// The text of an attribute, or null.
const std::string* TextOf(const Instruction& op, const char* attribute);
// Whether an instruction communicates buffers ("%...") or sums of the step ("$...").
bool MovesState(const Instruction& op);

// Keeps references: index and role must outlive it.
class StepProgram {
 public:
  StepProgram(const PlanIndex& index, const Role& role);

  const Instruction& At(int place) const { return *program_[static_cast<size_t>(place)]; }
  // Whether instruction `first` is done when `second` starts.
  bool Ordered(int first, int second) const { return order_.Ordered(first, second); }
  // What an instruction is about, for messages: a frame and microbatch, a bucket, a module.
  std::string Label(int place) const;

  // By module of the called block.
  const std::map<std::string, Places>& calls() const { return calls_; }
  const Places& CallsOf(const std::string& module) const;
  // Instructions of state but for accumulations, by kind and module ("": of the whole step).
  const std::map<std::pair<OpKind, std::string>, Places>& states() const { return states_; }
  const Places& StatesOf(OpKind kind, const std::string& module) const;
  const Places& accumulates() const { return accumulates_; }
  const Places& collectives() const { return collectives_; }  // those that move state

 private:
  void Collect(const PlanIndex& index);

  const std::vector<const Instruction*> program_;
  const HappensBefore order_;
  std::map<std::string, Places> calls_;
  std::map<std::pair<OpKind, std::string>, Places> states_;
  Places accumulates_, collectives_;
};

}  // namespace planwright
