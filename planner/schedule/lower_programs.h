// Everything the ranks will do: blocks of each module, and one program per role, from the settled facts of a plan
// (modules with buckets, groups, bridges, budget).
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

struct Programs {
  std::vector<Symbol> symbols;
  std::vector<Block> blocks;
  std::vector<Role> roles;
  std::vector<StageSchedule> schedule;  // without the backward actions of stages that learn nothing
};

// `plan` has everything but symbols, blocks and roles.
Programs LowerPrograms(const Recipe& recipe, const Plan& plan);

// Fills Group::streams: where some instruction communicates over it.
void MarkUsedGroups(Plan& plan);

}  // namespace planwright
