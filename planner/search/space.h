// The candidates of a search: every value that each key may take. Values that fit are found by the planner's own rules.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/search/candidate.h"

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
  // About how many candidates there are, by the first placing.
  double About();
  // Every grid and split into stages of a module on these ranks that the rules allow, with the ways of the recipe to
  // dispatch and to recompute. tp x cp and expert_tp divide a node, or keep the recipe's values: their messages are the
  // largest.
  std::vector<ModuleChoice> LayoutsOf(size_t module, const Placing& placing);
  // How many of them there are, with those that the rules refuse.
  int64_t listed() const { return listed_; }  // by the last LayoutsOf
  // The ways to dispatch tokens and to recompute, on one of these layouts.
  std::vector<ModuleChoice> WaysOf(size_t module, const ModuleChoice& layout) const;
  // Whether there are layouts with stages that may have other layers than those of LayoutsOf, which differ by at most
  // one.
  bool MayMoveLayers(size_t module) const;
  bool IsNearlyEven(size_t module, const std::vector<int64_t>& stage_layers) const;
  size_t CountWays(size_t module, const ModuleChoice& layout) const;
  size_t recomputes(size_t module) const { return recomputes_[module].size(); }
  // How many sorts of layers a way of WaysOf computes again.
  int64_t RecomputedBy(size_t module, size_t way) const;
  // Of the ways to recompute, by their places in WaysOf: the one that is like `way`, but for elementwise. `way` itself:
  // there is none.
  size_t WithoutElementwise(size_t module, size_t way) const { return without_[module][way]; }

 private:
  bool Fixed(const std::string& key) const;
  std::vector<std::string> DispatchesOf(size_t module, const ModuleChoice& layout) const;
  std::vector<char> OverlapsOf(size_t module, const ModuleChoice& layout) const;
  void FindPlacings(int64_t ranks);
  void FindSteps();
  // Whether keys say which layers stages have, and the search does not change them.
  bool SplitIsFixed(size_t module) const;
  std::vector<std::vector<int64_t>> SplitsOf(size_t module, int64_t pp) const;
  std::vector<std::vector<std::string>> RecomputesOf(size_t module) const;
  std::vector<int64_t> SizesOf(const std::string& key, int64_t is, int64_t of, bool in_node) const;
  bool Allowed(size_t module, const ModuleChoice& choice);

  const Recipe& recipe_;
  Recipe changed_;  // to ask the rules about
  const std::vector<std::string> fixed_;
  const Candidate given_;
  std::vector<Placing> placings_;
  std::vector<int64_t> micro_samples_;
  std::vector<StepChoice> steps_;
  std::vector<std::vector<std::vector<std::string>>> recomputes_;  // by module
  std::vector<std::vector<size_t>> without_;                       // by module and way: WithoutElementwise
  int64_t listed_ = 0;
  // What the rules said: of how axes cut sizes, by module, tp, cp, expert_tp and ep; and of stages.
  std::map<std::tuple<size_t, int64_t, int64_t, int64_t, int64_t>, bool> cuts_;
  std::map<std::tuple<size_t, int64_t, std::vector<int64_t>>, bool> stages_;
};

}  // namespace planwright
