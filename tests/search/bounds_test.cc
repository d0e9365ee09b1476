// The time and the memory that are put together from blocks are lower bounds of those of the whole plan, and near them.
#include <gtest/gtest.h>

#include "planner/recipe/model_facts.h"
#include "planner/search/quick_step.h"
#include "tests/search/tuned_recipe.h"
#include "tests/support/random_recipe.h"

namespace planwright {
namespace {

using testing::RandomRecipe;
using testing::ReadTuned;

struct Compared {
  int recipes = 0, refused = 0;
  double seconds = 0, memory = 0;  // sums of bound / whole
};

// Of all ways to recompute, nothing is the fastest and full the smallest, and without elementwise a way is faster: if
// that is too slow or too large, a search does not look at the others.
void CompareWays(QuickSteps& quick, size_t m, const ModuleChoice& language, int64_t micro, int64_t microbatches,
                 const std::string& name) {
  ModuleChoice none = language, full = language;
  none.recompute = {"none"}, full.recompute = {"full"};
  const double own = quick.LeastStep(m, language, micro, microbatches);
  EXPECT_LE(quick.LeastStep(m, none, micro, microbatches), own * (1 + 1e-9)) << name;
  ModuleChoice without = language;
  std::erase(without.recompute, "elementwise");
  if (without.recompute.empty()) without = none;
  EXPECT_LE(quick.LeastStep(m, without, micro, microbatches), own * (1 + 1e-9)) << name;
  const double splits = quick.LeastOfSplits(language, micro, microbatches, 1e300) * (1 + 1e-9);
  EXPECT_LE(quick.LeastOfSplits(none, micro, microbatches, 1e300), splits) << name;
  EXPECT_LE(quick.LeastOfSplits(without, micro, microbatches, 1e300), splits) << name;
  const ModuleStages stages = quick.StagesOf(m, language, micro), smallest = quick.StagesOf(m, full, micro);
  EXPECT_LE(smallest.memory - 2 * smallest.stages.front().out, stages.memory) << name;
}

// Compares the bounds of a recipe's own layout with its plan.
void Compare(const std::optional<TunedRecipe>& read, const std::string& name, Compared& compared) {
  if (!read) return void(++compared.refused);
  const TunedRecipe& tuned = *read;
  const Candidate candidate = CandidateOf(tuned.recipe);
  const std::optional<Plan> plan = PlanOf(tuned, candidate);
  const WholeStep whole = SimulateWhole(tuned, candidate);
  if (!plan || !whole.fits) return void(++compared.refused);
  const Rates rates = RatesOf(tuned.cluster);
  QuickSteps quick(tuned, rates);
  const QuickStep bound = quick.TimeCandidate(candidate, plan->budget.microbatches);
  EXPECT_LE(bound.seconds, whole.seconds * (1 + 1e-9)) << name;
  EXPECT_LE(bound.memory, whole.memory) << name;
  // The cheaper ones, of the language model alone, are below it.
  const size_t m = CarriesLoss(tuned.recipe.modules[0].model) ? 0 : 1;
  const ModuleChoice& language = candidate.modules.at(m);
  const int64_t micro = candidate.step.micro_samples, microbatches = plan->budget.microbatches;
  const ModuleStages stages = quick.StagesOf(m, language, micro);
  const QuickStep alone = quick.TimeAlone(stages, Together(candidate), microbatches);
  EXPECT_LE(alone.seconds, whole.seconds * (1 + 1e-9)) << name;
  EXPECT_LE(alone.memory, whole.memory) << name;
  EXPECT_LE(quick.LeastStep(m, language, micro, microbatches), whole.seconds * (1 + 1e-9)) << name;
  EXPECT_LE(quick.LeastOnRanks(language.ranks), whole.seconds * (1 + 1e-9)) << name;
  EXPECT_LE(quick.LeastOfMany(language, 5, microbatches), quick.LeastStep(m, language, 5, microbatches)) << name;
  CompareWays(quick, m, language, micro, microbatches, name);
  ++compared.recipes;
  compared.seconds += whole.seconds > 0 ? bound.seconds / whole.seconds : 1;
  compared.memory += static_cast<double>(bound.memory) / static_cast<double>(std::max<int64_t>(1, whole.memory));
}

TEST(Bounds, AreAtMostWhatTheWholePlanTakes) {
  // A GPU, whose host launches; CPUs, whose hosts run what they launch; and devices of unknown speed.
  const std::vector<std::vector<std::string>> devices = {
      {"cluster.gpu=h100_sxm"},
      {"cluster.gpu=h100_sxm", "cluster.gpus_per_node=4", "cluster.nodes=64"},
      {"cluster.gpu=none", "cluster.device={peak: 0.1, bandwidth: 20, link: 2, network: 1}"},
      {"cluster.gpu=none"}};
  Compared compared;
  for (unsigned seed = 0; seed < 400; ++seed) {
    RandomRecipe random(seed);
    std::vector<std::string> overrides = random.Overrides();
    const std::vector<std::string>& device = devices[seed % devices.size()];
    overrides.insert(overrides.end(), device.begin(), device.end());
    Compare(ReadTuned(random.File(), overrides), std::to_string(seed), compared);
  }
  EXPECT_GE(compared.recipes, 240) << compared.refused << " were refused";
  RecordProperty("of the time, in per mille", static_cast<int>(1000 * compared.seconds / compared.recipes));
  RecordProperty("of the memory, in per mille", static_cast<int>(1000 * compared.memory / compared.recipes));
  EXPECT_GE(compared.seconds / compared.recipes, 0.7);
}

TEST(Bounds, AreNearTheWholePlanOfRealModels) {
  for (const std::string file : {"nemotron_moe_vlm_20l_mock_8r", "nemotron_moe_vlm_54l_33n", "nemotron_moe_vlm_20l_4g",
                                 "nemotron_moe_lm_20l_1g"}) {
    Compared compared;
    Compare(ReadTuned("recipes/" + file + ".yaml", {}), file, compared);
    ASSERT_EQ(compared.recipes, 1) << file;
    EXPECT_GE(compared.seconds, 0.95) << file;
    EXPECT_GE(compared.memory, 0.95) << file;
  }
}

// If they were not near, they would cut nothing.
TEST(Bounds, AreNearBeforeStagesArePutTogether) {
  const TunedRecipe tuned = ReadTuned("recipes/nemotron_moe_vlm_54l_33n.yaml", {}).value();
  const Rates rates = RatesOf(tuned.cluster);
  QuickSteps quick(tuned, rates);
  ModuleChoice language = CandidateOf(tuned.recipe).modules[1];
  language.pp = 4;
  constexpr int64_t kMicrobatches = 24;
  const double alone = quick.TimeAlone(quick.StagesOf(1, language, 1), false, kMicrobatches).seconds;
  EXPECT_GE(quick.LeastStep(1, language, 1, kMicrobatches), 0.9 * alone);
  EXPECT_GE(quick.LeastOfMany(language, 6, kMicrobatches), 0.95 * quick.LeastStep(1, language, 6, kMicrobatches));
  EXPECT_GE(quick.LeastOnRanks(256), 0.1 * alone);
}

}  // namespace
}  // namespace planwright
