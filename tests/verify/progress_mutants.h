// Damage to what ranks communicate, one small change at a time, drawn at random over roles, blocks and instructions.
#pragma once

#include <cstdint>
#include <string>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct Mutant {
  Plan plan;
  std::string what;  // "drop": the way it was damaged; "" when the draw found nothing to damage
};

// Some are harmless: swapped equals, a reorder on streams that meet nobody else. A block may be damaged for one role alone.
Mutant DamageProgress(const Plan& sound, uint64_t seed);

}  // namespace planwright::testing
