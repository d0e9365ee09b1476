// What differs between two plans, what each difference does, and whether the loss curve may change. Layout, placement,
// buckets, overlap, recompute and names of groups never change it; what decides weights, samples, rates and arithmetic
// does (design: numbers must not depend on the layout).
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"

namespace planwright {

struct Change {
  std::string path;                 // "modules.language.grid.tp"; items of lists by name
  nlohmann::ordered_json from, to;  // null: not there
  // ranks, groups, bridges, schedule, budget, data, weights, arithmetic, memory, programs, run
  std::string area;
  std::string effect;  // one sentence, without its full stop
  bool may_change_loss = false;
};

struct PlanDiff {
  std::vector<Change> changes;  // in the order of the plan's fields

  bool same() const { return changes.empty(); }
  bool may_change_loss() const;
};

PlanDiff DiffPlans(const Plan& from, const Plan& to);

// {"same", "may_change_loss", "changes": [{"path", "from", "to", "effect", "area", "may_change_loss"}]}
nlohmann::ordered_json DiffJson(const PlanDiff& diff);

// The same for people, area by area; `from` and `to` are what the plans are called. Lines of at most `width` characters
// (0: any), but for words that are longer.
std::string DiffText(const PlanDiff& diff, const std::string& from, const std::string& to, size_t width = 0);

}  // namespace planwright
