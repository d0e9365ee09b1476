// One candidate of a search: values of every key that does not change the loss curve.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/recipe/recipe.h"

namespace planwright {

struct ModuleChoice {
  int64_t first_rank = 0, ranks = 1;
  int64_t tp = 1, cp = 1, pp = 1, ep = 1, expert_tp = 1;
  std::vector<int64_t> stage_layers;  // empty: as the recipe's keys split them
  std::string dispatch = "auto";
  bool overlap_dispatch = false;
  std::vector<std::string> recompute = {"none"};

  auto operator<=>(const ModuleChoice&) const = default;
};

struct StepChoice {
  int64_t micro_samples = 1, buckets = 1;
  bool overlap_reduce = true, overlap_gather = true;

  auto operator<=>(const StepChoice&) const = default;
};

struct Candidate {
  std::vector<ModuleChoice> modules;  // as Recipe::modules
  StepChoice step;

  auto operator<=>(const Candidate&) const = default;
};

// Whether all modules have the same ranks. Otherwise each has its own.
bool Together(const Candidate& candidate);

// By module: first rank, ranks, tp, cp, pp, ep and expert_tp.
std::vector<std::array<int64_t, 7>> GridsOf(const Candidate& candidate);

// What the recipe says.
Candidate CandidateOf(const Recipe& recipe);

// The recipe with a candidate's values. Its digest is that of `recipe`.
Recipe WithCandidate(Recipe recipe, const Candidate& candidate);

// The overrides that make `candidate` of `recipe`: "modules.language.parallel.tp=2".
std::vector<std::string> ChangesOf(const Recipe& recipe, const Candidate& candidate);

// "radio_encoder 8: tp 1 dp 8; language 56: tp 2 dp 28 ep 8; micro 1". Sizes of 1 are left out, but for tp and dp.
std::string LineOf(const Recipe& recipe, const Candidate& candidate);

}  // namespace planwright
