// Every mutant of every plan is refused, by a rule that it names, with a recipe line; the unmutated plans pass. Counts are printed.
#include "tests/verify/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "planner/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/verify.h"

namespace planwright {
namespace {

using testing::AllMutants;
using testing::Mutant;

struct Base {
  const char* name;
  const char* recipe;
  std::vector<std::string> overrides;
};

// The encoder on ranks [0, encoders), the language model behind it.
std::vector<std::string> Apart(int encoders, int encoder_tp, int ranks, int tp, int ep, std::vector<std::string> more = {}) {
  std::vector<std::string> overrides = {"cluster.nodes=2",
                                        "cluster.gpus_per_node=8",
                                        "modules.radio_encoder.placement.ranks=" + std::to_string(encoders),
                                        "modules.radio_encoder.parallel.tp=" + std::to_string(encoder_tp),
                                        "modules.language.placement.first_rank=" + std::to_string(encoders),
                                        "modules.language.placement.ranks=" + std::to_string(ranks),
                                        "modules.language.parallel.tp=" + std::to_string(tp),
                                        "modules.language.parallel.ep=" + std::to_string(ep)};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

std::vector<Base> Bases() {
  const std::string parallel = "modules.language.parallel.";
  return {
      {"shipped_tiny", "nemotron_moe_vlm_tiny", {}},
      {"shipped_8r_toy", "nemotron_moe_vlm_20l_mock_8r_toy", {}},
      {"tp2_dp2_ep4", "nemotron_moe_vlm_tiny", Apart(2, 2, 4, 2, 4)},
      {"uneven", "nemotron_moe_vlm_tiny", Apart(3, 1, 2, 1, 1)},
      {"colocated", "nemotron_moe_vlm_tiny", Apart(4, 1, 4, 2, 4, {"modules.language.placement.first_rank=0"})},
      {"pp2", "nemotron_moe_vlm_tiny", Apart(1, 1, 4, 2, 1, {parallel + "pp=2"})},
      {"cp2", "nemotron_moe_vlm_tiny", Apart(1, 1, 4, 1, 4, {parallel + "cp=2"})},
      {"cp2_tp2", "nemotron_moe_vlm_tiny",
       Apart(1, 1, 4, 2, 4, {parallel + "cp=2", "models.hybrid_moe_tiny.mamba.groups=4", "models.hybrid_moe_tiny.attention.kv_groups=4"})},
      {"expert_tp2", "nemotron_moe_vlm_tiny", Apart(1, 1, 4, 2, 2, {parallel + "expert_tp=2"})},
      {"recomputed", "nemotron_moe_vlm_tiny", Apart(2, 2, 2, 2, 1, {"modules.language.recompute=[full]"})},
      {"frozen_language", "nemotron_moe_vlm_tiny", Apart(1, 1, 2, 2, 1, {"modules.language.train.backbone=frozen"})},
      {"overlapped", "nemotron_moe_vlm_tiny",
       Apart(2, 1, 4, 2, 1, {"gradients.overlap_reduce=true", "gradients.overlap_gather=true", "gradients.buckets=3"})},
  };
}

std::optional<Plan> Compiled(const Base& base, Diagnostics& problems) {
  const auto recipe = ReadRecipe(std::string(PLANWRIGHT_SOURCE_DIR "/recipes/") + base.recipe + ".yaml", base.overrides, problems);
  return recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
}

class MutatedPlan : public ::testing::TestWithParam<Base> {};

// A plan of hundreds of blocks has thousands of mutants: every `step`-th of each kind is judged, all of the rare kinds.
std::vector<Mutant> Sample(std::vector<Mutant> mutants, size_t most_of_a_kind) {
  std::map<std::string, size_t> all, seen;
  for (const Mutant& mutant : mutants) ++all[mutant.kind];
  std::vector<Mutant> chosen;
  for (Mutant& mutant : mutants) {
    const size_t step = (all[mutant.kind] + most_of_a_kind - 1) / most_of_a_kind;
    if (seen[mutant.kind]++ % step == 0) chosen.push_back(std::move(mutant));
  }
  return chosen;
}

TEST_P(MutatedPlan, IsRefusedByARuleThatTheMutantNames) {
  Diagnostics problems;
  const std::optional<Plan> plan = Compiled(GetParam(), problems);
  ASSERT_TRUE(plan) << problems.sorted().front().message;
  ASSERT_TRUE(VerifyPlan(*plan).empty());
  std::set<std::string> digests = {plan->digest};
  std::map<std::string, std::map<std::string, int>> counts;
  int judged = 0;
  for (const Mutant& mutant : Sample(AllMutants(*plan), 8)) {
    Plan damaged = *plan;
    mutant.inflict(damaged);
    const std::string digest = PlanDigest(damaged);
    EXPECT_NE(digest, plan->digest) << mutant.kind << ", " << mutant.where << " changes nothing";
    if (!digests.insert(digest).second) continue;  // two ways to one plan
    ++judged;
    const std::vector<Violation> found = VerifyPlan(damaged);
    ASSERT_FALSE(found.empty()) << mutant.kind << ", " << mutant.where << " passes";
    const bool named = std::find(mutant.rules.begin(), mutant.rules.end(), found.front().rule) != mutant.rules.end();
    EXPECT_TRUE(named) << mutant.kind << ", " << mutant.where << " is refused by " << found.front().rule << ": " << found.front().message;
    for (const Violation& violation : found) {
      const bool located = violation.origin >= 0 && damaged.origins[static_cast<size_t>(violation.origin)].line > 0;
      EXPECT_TRUE(located) << violation.rule << ": " << violation.message;
    }
    ++counts[found.front().rule][mutant.kind];
  }
  std::cout << GetParam().name << ": " << judged << " distinct mutants refused\n";
  for (const auto& [rule, kinds] : counts) {
    std::cout << "  " << rule;
    for (const auto& [kind, count] : kinds) std::cout << " " << kind << ":" << count;
    std::cout << "\n";
  }
  EXPECT_GE(judged, 250);  // each, of twelve plans
}

INSTANTIATE_TEST_SUITE_P(Bases, MutatedPlan, ::testing::ValuesIn(Bases()), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace planwright
