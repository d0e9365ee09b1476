// Layers that are moved between stages: the search finds what trying every way to give layers to stages finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <regex>
#include <set>

#include "planner/search/quick_step.h"
#include "tests/search/tuned_recipe.h"
#include "tests/support/random_recipe.h"

namespace planwright {
namespace {

using testing::kTiny;
using testing::RandomRecipe;
using testing::ReadTuned;
using testing::RequestOf;
using testing::Tuned;
using Layers = std::vector<int64_t>;

// All ways to give consecutive layers to stages, of which only the first and the last may have none.
std::vector<Layers> AllWays(int64_t layers, size_t stages) {
  std::vector<Layers> ways;
  Layers way;
  const std::function<void(int64_t)> deal = [&](int64_t left) {
    if (way.size() + 1 == stages) {
      way.push_back(left), ways.push_back(way), way.pop_back();
      return;
    }
    for (int64_t here = way.empty() ? 0 : 1; here <= left; ++here)
      way.push_back(here), deal(left - here), way.pop_back();
  };
  deal(layers);
  return ways;
}

// By its bound, each way once.
std::vector<std::pair<double, Layers>> Visited(const SplitBounds& bounds, double from, double to) {
  std::vector<std::pair<double, Layers>> visited;
  EXPECT_TRUE(bounds.Visit(from, to, 1'000'000, [&](const Layers& layers, double seconds) {
    visited.push_back({seconds, layers});
  }));
  std::sort(visited.begin(), visited.end());
  return visited;
}

LayerCosts RandomCosts(unsigned seed) {
  std::mt19937 random(seed);
  const auto number = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  const auto part = [&] {
    const double backward = number(100) / 10.0;
    return PartCost{.forward = number(50) / 10.0,
                    .backward = backward,
                    .work = 0.9 * backward,
                    .reduce = number(300) / 10.0,
                    .states = number(20),
                    .kept = number(5)};
  };
  LayerCosts costs{.embed = part(), .head = part(), .rest = 1.5};
  for (int i = 4 + number(5); i > 0; --i) costs.layers.push_back(part());
  costs.beside = number(2) == 0 ? 1 : 0.2, costs.hop = number(3) / 10.0, costs.fill = number(3),
  costs.drain = number(3);
  costs.limit = number(2) == 0 ? 0 : 120;
  costs.stages = 2 + number(4), costs.microbatches = 1 + number(12);
  return costs;
}

TEST(SplitBounds, ListsEveryWayThatFitsOnce) {
  int without = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    LayerCosts costs = RandomCosts(seed);
    const double never = std::numeric_limits<double>::infinity();
    const SplitBounds bounds(costs, never);
    const auto all = Visited(bounds, 0, never);
    std::vector<Layers> ways;
    for (const auto& [seconds, layers] : all) ways.push_back(layers);
    std::sort(ways.begin(), ways.end());
    EXPECT_EQ(std::adjacent_find(ways.begin(), ways.end()), ways.end()) << seed;
    const auto possible = AllWays(static_cast<int64_t>(costs.layers.size()), static_cast<size_t>(costs.stages));
    EXPECT_TRUE(costs.limit > 0 ? ways.size() <= possible.size() : ways == possible) << seed;
    without += costs.limit > 0 && ways.size() < possible.size() ? 1 : 0;
    if (all.empty()) {
      EXPECT_EQ(bounds.least(), never) << seed;
      continue;
    }
    // What is found without looking at all ways is below each of them, and near the least.
    EXPECT_LE(bounds.least(), all.front().first + 1e-9) << seed;
    EXPECT_GE(bounds.least(), 0.8 * all.front().first) << seed;
    EXPECT_GE(bounds.most(), all.back().first) << seed;
    // Bands have each way once, and so has a search that wants no more than some seconds.
    const double middle = all[all.size() / 2].first;
    const auto below = Visited(bounds, 0, middle), above = Visited(bounds, middle, never);
    EXPECT_EQ(below.size() + above.size(), all.size()) << seed;
    EXPECT_EQ(Visited(SplitBounds(costs, middle), 0, middle).size(), below.size()) << seed;
    size_t visits = 0;
    EXPECT_EQ(bounds.Visit(0, never, 3, [&](const Layers&, double) { ++visits; }), all.size() <= 3) << seed;
    EXPECT_EQ(visits, std::min<size_t>(3, all.size())) << seed;
  }
  EXPECT_GE(without, 10) << "memory leaves some out";
}

TEST(SplitBounds, AreAtMostWhatTheWholePlanTakes) {
  int compared = 0;
  double share = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    RandomRecipe random(seed);
    std::vector<std::string> overrides = random.Overrides();
    overrides.push_back("cluster.gpu=h100_sxm");
    if (seed % 2 == 0) overrides.insert(overrides.end(), {"cluster.gpus_per_node=4", "cluster.nodes=64"});
    const std::optional<TunedRecipe> tuned = ReadTuned(random.File(), overrides);
    if (!tuned) continue;
    const Candidate candidate = CandidateOf(tuned->recipe);
    const Rates rates = RatesOf(tuned->cluster);
    QuickSteps quick(*tuned, rates);
    const ModuleChoice& language = candidate.modules.at(quick.language());
    const std::optional<Plan> plan = language.pp > 1 ? PlanOf(*tuned, candidate) : std::nullopt;
    if (!plan) continue;
    const WholeStep whole = SimulateWhole(*tuned, candidate);
    const int64_t micro = candidate.step.micro_samples, microbatches = plan->budget.microbatches;
    const std::optional<LayerCosts> costs = quick.CostsOfLayers(language, micro, microbatches);
    ASSERT_TRUE(costs) << seed;
    Layers stages(static_cast<size_t>(language.pp), 0);
    for (const Module& module : plan->modules) {
      if (module.name != *tuned->recipe.modules[quick.language()].name) continue;
      for (const LayerSummary& layer : module.layers) ++stages[static_cast<size_t>(layer.stage)];
    }
    if (!whole.fits || std::find(stages.begin() + 1, stages.end() - 1, 0) != stages.end() - 1) continue;
    const double never = std::numeric_limits<double>::infinity();
    const SplitBounds bounds(*costs, never);
    double bound = never;
    for (const auto& [seconds, layers] : Visited(bounds, 0, never)) {
      if (layers == stages) bound = seconds;
    }
    EXPECT_LE(bound, whole.seconds * (1 + 1e-9)) << seed << ", or it fits, and is not listed";
    EXPECT_LE(bounds.least(), bound * (1 + 1e-9)) << seed;
    EXPECT_LE(quick.LeastOfSplits(language, micro, microbatches, never), whole.seconds * (1 + 1e-9)) << seed;
    // With the layout of other modules it is still one.
    for (size_t m = 0; m < candidate.modules.size() && !Together(candidate); ++m) {
      if (m == quick.language()) continue;
      const int64_t lanes = plan->modules[m].grid.dp, language_lanes = plan->modules[quick.language()].grid.dp;
      const ModuleStages other = quick.StagesOf(m, candidate.modules[m], (micro * language_lanes + lanes - 1) / lanes);
      std::vector<ModuleStages> others(candidate.modules.size(), QuickSteps::AtLeast({}));
      others[m] = QuickSteps::AtLeast({&other});
      const ModuleStages own = quick.StagesOf(quick.language(), language, micro);
      EXPECT_LE(quick.TimeAlone(own, false, microbatches, others).seconds, whole.seconds * (1 + 1e-9)) << seed;
    }
    ++compared, share += bound / whole.seconds;
  }
  EXPECT_GE(compared, 20);
  EXPECT_GE(share / compared, 0.4);
}

// GPUs so slow that the tiny model keeps them busy: an encoder of one rank, and four ranks with stages.
std::vector<std::string> SlowPipeline(const std::string& pattern, int stages) {
  return {"cluster.gpu=other",
          "cluster.gpus_per_node=5",
          "cluster.device.memory=16",
          "cluster.device.peak=0.05",
          "cluster.device.bandwidth=2",
          "cluster.device.link=0.5",
          "modules.language.placement.first_rank=1",
          "modules.language.placement.ranks=4",
          "modules.language.parallel.pp=" + std::to_string(stages),
          "models.hybrid_moe_tiny.pattern=" + pattern};
}

const std::vector<std::string> kOnlyLayers = {"gradients",
                                              "batch",
                                              "modules.radio_encoder",
                                              "modules.language.recompute",
                                              "modules.language.placement",
                                              "modules.language.parallel.tp",
                                              "modules.language.parallel.cp",
                                              "modules.language.parallel.pp",
                                              "modules.language.parallel.ep",
                                              "modules.language.parallel.expert_tp"};

TEST(MovedLayers, AreWhatTryingEveryWayFinds) {
  int faster = 0, proved = 0, cases = 0;
  for (const auto& [pattern, stages] :
       std::vector<std::pair<std::string, int>>{{"MEM*EMEM", 2}, {"EEEEMMMM", 2}, {"ME*EM", 4}, {"EEMM*E", 4}}) {
    // Much, and so much that only some ways fit.
    for (const std::string memory : {"16", stages == 2 ? "4.281" : "2.519"}) {
      std::vector<std::string> overrides = SlowPipeline(pattern, stages);
      overrides.push_back("cluster.device.memory=" + memory);
      if (stages == 4 && memory == "16") overrides.emplace_back("modules.language.recompute=[moe, elementwise]");
      const TuneRequest request = RequestOf(kTiny, overrides, kOnlyLayers);
      const TuneResult result = Tuned(request), again = Tuned(request);
      const TunedRecipe tuned = ReadTuned(kTiny, overrides).value();
      Candidate candidate = CandidateOf(tuned.recipe);
      double least = std::numeric_limits<double>::infinity();
      for (const Layers& way : AllWays(static_cast<int64_t>(pattern.size()), static_cast<size_t>(stages))) {
        candidate.modules[1].stage_layers = way;
        const WholeStep whole = SimulateWhole(tuned, candidate);
        if (whole.fits) least = std::min(least, whole.seconds);
      }
      if (result.best.empty()) {
        EXPECT_EQ(least, std::numeric_limits<double>::infinity()) << pattern << " " << memory;
        continue;
      }
      ++cases;
      // The bound holds; here it is reached, so that the optimum is found.
      EXPECT_LE(result.lower_bound, least) << pattern;
      EXPECT_LE(least, result.fastest) << pattern;
      // The first one may have even stages.
      EXPECT_LE(result.best[0].seconds, result.fastest * (1 + kDifferenceErrors.same_grids));
      EXPECT_TRUE(result.moved.searched);
      if (result.gap == 0) {
        ++proved;
        EXPECT_EQ(result.fastest, least) << pattern;
      }
      faster += result.fastest < result.moved.even || result.moved.even == 0 ? 1 : 0;
      EXPECT_TRUE(result.best[0].proved);
      // Its figures are those of the recipe with the changes.
      std::vector<std::string> changed = overrides;
      changed.insert(changed.end(), result.best[0].changes.begin(), result.best[0].changes.end());
      const TunedRecipe written = ReadTuned(kTiny, changed).value();
      const WholeStep whole = SimulateWhole(written, CandidateOf(written.recipe));
      EXPECT_EQ(whole.seconds, result.best[0].seconds) << pattern;
      EXPECT_EQ(whole.memory, result.best[0].memory) << pattern;
      // The same request gives the same result.
      ASSERT_EQ(again.best.size(), result.best.size());
      for (size_t i = 0; i < result.best.size(); ++i) EXPECT_EQ(again.best[i].digest, result.best[i].digest);
      EXPECT_EQ(again.moved.timed, result.moved.timed);
    }
  }
  EXPECT_EQ(cases, 8);
  EXPECT_EQ(proved, cases);
  EXPECT_GE(faster, 3) << "of " << cases;
}

TEST(MovedLayers, StayWhereTheyAreFixed) {
  std::vector<std::string> overrides = SlowPipeline("EEEEMMMM", 2), fixed = kOnlyLayers;
  fixed.emplace_back("modules.language.parallel.stage_layers");
  const TuneResult even = Tuned(RequestOf(kTiny, overrides, fixed));
  ASSERT_EQ(even.best.size(), 1u);
  EXPECT_TRUE(even.best[0].changes.empty());
  EXPECT_FALSE(even.moved.possible);
  overrides.emplace_back("modules.language.parallel.stage_layers=[5, 3]");
  const TuneResult given = Tuned(RequestOf(kTiny, overrides, fixed));
  ASSERT_EQ(given.best.size(), 1u);
  EXPECT_TRUE(given.best[0].changes.empty());
  EXPECT_EQ(given.gap, 0);
}

// If the recipe does not say which layers stages have, that key says nothing about their number.
TEST(MovedLayers, AreFixedForEveryNumberOfStages) {
  std::vector<std::string> fixed = kOnlyLayers;
  std::erase(fixed, "modules.language.parallel.pp");
  fixed.emplace_back("modules.language.parallel.stage_layers");
  TuneRequest request = RequestOf(kTiny, SlowPipeline("MEM*EMEM", 1), fixed);
  EXPECT_EQ(Tuned(request).counts.space, 3) << "one, two and four stages";
  request.overrides = SlowPipeline("MEM*EMEM", 2);
  request.overrides.emplace_back("modules.language.parallel.stage_layers=[3, 5]");
  EXPECT_EQ(Tuned(request).counts.space, 1) << "the list is for two stages";
}

// With even stages the layout that runs Mamba layers again is more than a tenth slower than the fastest.
TEST(MovedLayers, AreInOtherRows) {
  std::vector<std::string> fixed = kOnlyLayers;
  std::erase(fixed, "modules.language.recompute");
  const TuneResult result = Tuned(RequestOf(kTiny, SlowPipeline("EEEEMMMM", 2), fixed));
  ASSERT_GE(result.best.size(), 3u);
  std::set<std::string> rows;
  bool moved = false;
  for (const TunedLayout& layout : result.best) {
    moved |= std::regex_search(layout.line, std::regex(" stages [0-9+]+ recompute mamba;"));
    const std::string row = std::regex_replace(layout.line, std::regex(" stages [0-9+]+"), "");
    EXPECT_TRUE(rows.insert(row).second || layout.simplest) << layout.line;
  }
  EXPECT_TRUE(moved);
}

// By hand 2.301 s were found, where the best even stages take 2.58 s.
TEST(MovedLayers, MakeTheProductionPipelineFaster) {
  TuneRequest request =
      RequestOf("recipes/nemotron_moe_vlm_54l_33n.yaml",
                {"modules.radio_encoder.placement.ranks=40", "modules.language.placement.first_rank=40",
                 "modules.language.placement.ranks=224", "modules.language.parallel.tp=1",
                 "modules.language.parallel.ep=1", "modules.language.parallel.pp=7",
                 "modules.language.parallel.stage_layers=[8, 8, 8, 8, 8, 7, 7]", "gradients.overlap_reduce=false"},
                kOnlyLayers);
  request.simulations = 12, request.best = 1;
  const TuneResult result = Tuned(request);
  ASSERT_FALSE(result.best.empty());
  EXPECT_NEAR(result.moved.even, 2.575, 0.001);
  EXPECT_LE(result.fastest, 2.301);
  EXPECT_LT(result.gap, 0.02);
}

}  // namespace
}  // namespace planwright
