// The table of state (states.def) as structs: what instructions touch beside values, and in which order each list of a
// role touches it. The head of states.def explains the notation of the texts.
//
// Lowering writes programs without reading this table. `verify` and the generated page docs/operations.md read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/expression.h"
#include "planner/plan/instruction.h"

namespace planwright {

// One entry of a life: instructions of some kinds.
struct StateStep {
  std::vector<OpKind> kinds;
  bool any = false;                // as often as other rules allow, also never; false: once
  std::optional<Expression> when;  // it is there exactly where this is not 0; none: always
};

// The instructions of one list that touch a state, in order.
struct StateLife {
  std::string list;  // of kRoleLists
  std::vector<StateStep> steps;
};

struct StateInfo {
  std::string name;  // "%{module}.gradients.{bucket}"
  std::string is;    // what it is, in words
  std::vector<StateLife> lives;

  const StateLife* LifeIn(std::string_view list) const;  // null: nothing in this list touches the state
};

// All entries, in the order of states.def. Parsed when they are first asked for.
const std::vector<StateInfo>& AllStates();

// The lists in which instructions of this kind touch state, in the order of kRoleLists: "step", "setup, resume"; "" if
// no life names the kind.
std::string ListsOf(OpKind kind);

// The section of docs/operations.md about state.
std::string StatesReference();

}  // namespace planwright
