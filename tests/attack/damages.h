// The ways in which plan_attack damages a plan. They know the plan's structs and ops.def, and nothing of verify/: an
// attack is worth what it does not know.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "tests/attack/spots.h"

namespace planwright::attack {

// What was done to a plan.
struct Damage {
  std::string kind;   // "move in step, in all roles"; counted
  std::string words;  // "roles[0].step[12] adamw to 3"
};

// Each returns nothing where this plan has no place for the damage that was drawn.

// Numbers, words, types and lists, one alone or all of a kind that have the same value (field_damage.cc).
std::optional<Damage> DamageField(Plan& plan, Random& random);
// Deletes, copies, moves, swaps and inserts instructions, in one list or in all roles alike (instruction_damage.cc).
std::optional<Damage> DamageInstructions(Plan& plan, Random& random);
// Swaps a field of two alike instructions, or the uses of two values of one type (exchange_damage.cc).
std::optional<Damage> ExchangeFields(Plan& plan, Random& random);
// Takes parts of another valid plan (splice_damage.cc).
std::optional<Damage> Splice(Plan& plan, const std::vector<Plan>& donors, Random& random);

}  // namespace planwright::attack
