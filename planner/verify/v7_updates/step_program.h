// A role's step as the rules of its end see it: the instructions in order, with the blocks opened that hold collectives
// of buckets, and where calls, sums and collectives stand. A program is sequential, whatever its streams: what touches
// the same runs in the order of these places.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/verify/shared/plan_index.h"

namespace planwright {

using Places = std::vector<int>;

// The value that an instruction of state moves: "%language.gradients.0"; "nothing" where there is none.
std::string Subject(const Instruction& op);
// Whether an instruction communicates buffers ("%...") or sums of the step ("$...").
bool MovesState(const Instruction& op);

// Keeps references: index and role must outlive it.
class StepProgram {
 public:
  StepProgram(const PlanIndex& index, const Role& role);

  const Instruction& At(int place) const { return *program_[static_cast<size_t>(place)]; }
  // What an instruction is about, for messages: a frame and microbatch, a bucket, a module.
  std::string Label(int place) const;

  // By module of the called block.
  const std::map<std::string, Places>& calls() const { return calls_; }
  const Places& CallsOf(const std::string& module) const;
  // Instructions of state but for accumulations, by kind, module ("": of the whole step) and bucket (-1: of none).
  struct State {
    OpKind kind{};
    std::string module;
    int64_t bucket = -1;
    auto operator<=>(const State&) const = default;
  };
  const std::map<State, Places>& states() const { return states_; }
  const Places& StatesOf(const State& state) const;
  const Places& accumulates() const { return accumulates_; }
  const Places& collectives() const { return collectives_; }  // those that move state

 private:
  void Collect(const PlanIndex& index);

  const std::vector<const Instruction*> program_;
  std::map<std::string, Places> calls_;
  std::map<State, Places> states_;
  Places accumulates_, collectives_;
};

}  // namespace planwright
