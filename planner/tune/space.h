// The candidates of a search: every value that each key may take. Values that fit are found by the planner's own rules.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "planner/tune/candidate.h"

namespace planwright {

// Ranks of each module, as Recipe::modules.
struct Placing {
  std::vector<int64_t> first_rank, ranks;
  bool together = false;  // all modules on all ranks
};

class Space {
 public:
  // `ranks`: of the world. `fixed`: keys that keep the recipe's value (TuneRequest::fixed). Keeps a reference.
  Space(const Recipe& recipe, int64_t ranks, std::vector<std::string> fixed);

  // In a fixed order, the recipe's own way first.
  const std::vector<Placing>& placings() const { return placings_; }
  // Samples of a microbatch: divisors of the global batch.
  const std::vector<int64_t>& micro_samples() const { return micro_samples_; }
  // Ways to reduce and gather gradients; micro_samples is that of the recipe.
  const std::vector<StepChoice>& steps() const { return steps_; }
  // Every layout of a module on these ranks whose sizes multiply to the ranks. Placing is filled in.
  std::vector<ModuleChoice> LayoutsOf(size_t module, const Placing& placing) const;

  // Calls `visit` with every candidate, until it returns false. For small spaces.
  void ForEach(const std::function<bool(const Candidate&)>& visit) const;

 private:
  bool Fixed(const std::string& key) const;
  void FindPlacings(int64_t ranks);
  std::vector<std::vector<int64_t>> SplitsOf(size_t module, int64_t pp) const;
  std::vector<std::vector<std::string>> RecomputesOf(size_t module) const;

  const Recipe& recipe_;
  const std::vector<std::string> fixed_;
  const Candidate given_;
  std::vector<Placing> placings_;
  std::vector<int64_t> micro_samples_;
  std::vector<StepChoice> steps_;
};

// Whether the rules for one module refuse a layout: its grid, what its axes must divide, and its stages. Those of the
// planner (topology).
bool Allowed(const Recipe& recipe, size_t module, const ModuleChoice& choice);

}  // namespace planwright
