// Which pipeline stage of a module a role runs, and what a role is called with.
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// Pipeline coordinate of the role's ranks in the module: the same for all of them (V1). -1: the role has no rank there.
inline int StageOf(const Role& role, const Module& module) {
  if (role.ranks.empty() || !module.grid.contains(role.ranks.front().first)) return -1;
  return CoordinateOf(module.grid, role.ranks.front().first, Axis::kPp);
}

inline bool Runs(const Role& role, const Module& module) {
  for (const std::string& name : role.modules) {
    if (name == module.name) return true;
  }
  return false;
}

}  // namespace planwright
