// A role's step as the rules on its end need it: the instructions in order, and the places of calls, additions to sums,
// and collectives on state. Blocks that contain collectives on buckets are expanded; other calls stay one instruction.
// Streams do not matter here: instructions that touch the same state run in program order.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/verify/shared/plan_index.h"

namespace planwright {

using Places = std::vector<int>;  // indices in the expanded step, ascending

// The state that an instruction moves, such as "%language.gradients.0"; "nothing" if it has no input.
std::string Subject(const Instruction& op);
// Whether an instruction communicates buffers of buckets ("%...") or sums of the step ("$...").
bool MovesState(const Instruction& op);

// Keeps references: index and role must outlive it.
class StepProgram {
 public:
  StepProgram(const PlanIndex& index, const Role& role);

  const Instruction& At(int place) const { return *program_[static_cast<size_t>(place)]; }
  // For messages, what an instruction works on: a frame and microbatch, a bucket, or a module.
  std::string Label(int place) const;

  // Calls, by module of the called block.
  const std::map<std::string, Places>& calls() const { return calls_; }
  const Places& CallsOf(const std::string& module) const;
  // Instructions that change state, except additions to sums: by kind, module ("": the whole step) and bucket (-1:
  // none).
  struct StateKey {
    OpKind kind{};
    std::string module;
    int64_t bucket = -1;
    auto operator<=>(const StateKey&) const = default;
  };
  const std::map<StateKey, Places>& state_changes() const { return state_changes_; }
  const Places& StateChangesOf(const StateKey& key) const;
  const Places& accumulates() const { return accumulates_; }  // additions to sums
  const Places& collectives() const { return collectives_; }  // collectives that move state

 private:
  void CollectPlaces(const PlanIndex& index);

  const std::vector<const Instruction*> program_;
  std::map<std::string, Places> calls_;
  std::map<StateKey, Places> state_changes_;
  Places accumulates_, collectives_;
};

}  // namespace planwright
