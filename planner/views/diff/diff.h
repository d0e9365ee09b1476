// What differs between two plans, what each difference does, and whether the loss curve may change. A layout
// (placement, parallel sizes, buckets, overlap, recompute, names of groups) never changes the curve; what decides
// weights, samples, rates and arithmetic may (docs/training/layout_independence.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/plan/plan.h"

namespace planwright {

// One difference, as `plan diff` tells it.
struct PlanChange {
  std::string path;                 // "modules.language.grid.tp"; items of lists by name, "*" for many items
  nlohmann::ordered_json from, to;  // null: this plan has no such field or item
  // ranks, groups, bridges, schedule, budget, data, evaluation, weights, arithmetic, memory, programs, checkpoint, run
  std::string area;
  std::string effect;  // one sentence, without its full stop
  bool may_change_loss = false;
};

struct PlanDiff {
  std::vector<PlanChange> changes;  // in the order of the plan's fields
  // Of two plans with sources, none of whose changes but those of data can change a sample: the first one that is
  // another. None: all samples are the same, or it is not known.
  std::optional<int64_t> first_other_sample;

  bool same() const { return changes.empty(); }
  bool may_change_loss() const;
};

// Compares fields, sizes of groups, what layers compute, and the files that relative paths lead to. Two plans of
// different digests are never the same plan.
PlanDiff DiffPlans(const Plan& from, const Plan& to);

// The first sample, not before `first`, that the plans' data sections give otherwise; none: as first_other_sample.
std::optional<int64_t> FirstOtherSample(const PlanDiff& diff, const Plan& from, const Plan& to, int64_t first);

// {"same", "may_change_loss", "first_other_sample" (with sources), "changes": [{"path", "from", "to", "effect", "area",
// "may_change_loss"}]}
nlohmann::ordered_json DiffJson(const PlanDiff& diff);

// The same for people, area by area; `from` and `to` are what the plans are called. Lines have at most `width`
// characters (0: any number), except for words that are longer.
std::string DiffText(const PlanDiff& diff, const std::string& from, const std::string& to, size_t width = 0);

}  // namespace planwright
