// Layouts that the reference, the hand-wired system that this one replaces, accepts or refuses, and its grids. The
// order of its checks is not compared: we report all problems at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "planner/compile/topology/place_modules.h"
#include "tests/support/golden.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::StartsWith;

ModuleRecipe ModuleOf(const json& spec, int line) {
  const Parallel parallel = {spec.value("tp", 1), spec.value("cp", 1), spec.value("pp", 1), spec.value("ep", 1),
                             spec.value("expt_tp", 1)};
  const int first = spec.value("rank_offset", 0), ranks = spec.at("num_ranks");
  return spec.at("name") == "language" ? BuildLanguage(first, ranks, parallel, line)
                                       : BuildEncoder(first, ranks, parallel, line, spec.at("name"));
}

// The reference's world size is given; ours comes from the cluster.
Recipe RecipeOf(const json& specs, int world) {
  std::vector<ModuleRecipe> modules;
  for (const json& spec : specs) modules.push_back(ModuleOf(spec, 100 * static_cast<int>(modules.size() + 1)));
  Recipe recipe = BuildRecipe(std::move(modules));
  recipe.cluster = {{world, Line(2)}, {1, Line(3)}, std::string("h100_sxm")};
  return recipe;
}

// Ranks behind the last module: the reference has to start them and refuses them. We start only the ranks of modules
// and warn of idle GPUs.
bool OnlyTheTailIsFree(const json& specs, int world) {
  int end = 0, ranks = 0;
  std::set<int> starts;
  for (const json& spec : specs) {
    end = std::max(end, spec.value("rank_offset", 0) + spec.at("num_ranks").get<int>());
    if (starts.insert(spec.value("rank_offset", 0)).second) ranks += spec.at("num_ranks").get<int>();
  }
  return end < world && ranks == end;
}

TEST(GoldenLayouts, TopologyValidation) {
  const std::map<std::string, std::string> kinds = {{"OVERLAP_PARTIAL", "PlacementsOverlap"},
                                                    {"DENSE_NOT_DIVISIBLE", "GridDoesNotFit"},
                                                    {"WORLD_NOT_COVERED", "RanksNotCovered"}};
  int compared = 0;
  for (const json& c : Golden().at("topology_validation")) {
    Diagnostics diagnostics;
    const auto grids = GridsOf(PlaceModules(RecipeOf(c.at("specs"), c.at("world_size")), diagnostics));
    const bool tail = OnlyTheTailIsFree(c.at("specs"), c.at("world_size"));
    EXPECT_EQ(grids.has_value(), tail || c.at("ok").get<bool>()) << c.at("id");
    if (tail) {
      EXPECT_THAT(KindsAndLines(diagnostics), ElementsAre("IdleGpus:2")) << c.at("id");
    } else if (!c.at("ok").get<bool>()) {
      EXPECT_THAT(KindsAndLines(diagnostics), Contains(StartsWith(kinds.at(c.at("code"))))) << c.at("id");
    }
    ++compared;
  }
  EXPECT_GE(compared, 4);
}

// Arguments override those of the 8-rank default; options that we do not have (weight shards, an encoder overlap
// switch) are left out.
TEST(GoldenLayouts, ArgumentValidation) {
  int compared = 0;
  for (const json& c : Golden().at("args_validation")) {
    const json& a = c.at("args");
    if (a.contains("tensor_parallel_num_weight_shards") || a.value("encoder_ddp_overlap", false)) continue;
    json specs = json::array();
    if (!a.value("llm_only", false)) {
      const int tp = a.value("encoder_tp", 2), dp = a.value("encoder_dp", 2);
      specs.push_back({{"name", "images"}, {"num_ranks", tp * dp}, {"tp", tp}, {"rank_offset", 0}});
    }
    const int tp = a.value("llm_tp", 2), dp = a.value("llm_dp", 2);
    specs.push_back({{"name", "language"},
                     {"num_ranks", tp * dp},
                     {"tp", tp},
                     {"ep", a.value("llm_ep", 1)},
                     {"rank_offset", a.value("llm_offset", 4)}});
    Diagnostics diagnostics;
    const auto grids = GridsOf(PlaceModules(RecipeOf(specs, c.at("world_size")), diagnostics));
    ++compared;
    if (OnlyTheTailIsFree(specs, c.at("world_size"))) {
      EXPECT_TRUE(grids.has_value() && !c.at("ok").get<bool>()) << c.at("id");
      EXPECT_THAT(KindsAndLines(diagnostics), Contains("IdleGpus:2")) << c.at("id");
      continue;
    }
    ASSERT_EQ(grids.has_value(), c.at("ok").get<bool>()) << c.at("id");
    if (!grids) {
      EXPECT_EQ(c.at("code"), "SPANS_COVER");
      EXPECT_THAT(KindsAndLines(diagnostics), Contains(StartsWith("RanksNotCovered")));
      continue;
    }
    for (size_t i = 0; i < grids->size(); ++i) {
      const json& m = c.at("specs")[i];
      EXPECT_EQ(grids->at(i),
                (Grid{m["rank_offset"], m["tp"], m["cp"], m["dp"], m["pp"], m["expt_tp"], m["ep"], m["expt_dp"]}))
          << c.at("id");
    }
  }
  EXPECT_GE(compared, 8);
}

}  // namespace
}  // namespace planwright
