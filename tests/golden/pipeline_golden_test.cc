// Pipeline stages of modules and of layers, compared with the reference system. Differences: encoders feed one language
// model, which is always last; there are no virtual stages; and no layer is ever left out.
#include <map>

#include "tests/golden/golden_program.h"

namespace planwright {
namespace {

using nlohmann::json;
using testing::CaseName;
using testing::GoldenModule;
using testing::GoldenRecipe;
using testing::Ids;

// The modules of the golden graph; the module without an outgoing edge is last.
GoldenRecipe RecipeOf(const json& edges, const json& modules) {
  GoldenRecipe recipe;
  std::string language;
  for (const auto& [name, targets] : edges.items()) {
    if (targets.empty() || language.empty()) language = name;
    for (const std::string target : targets) recipe.edges.emplace_back(name, target);
  }
  const auto add = [&](const std::string& name) {
    const int first_rank = static_cast<int>(recipe.modules.size());
    if (modules.is_null()) return recipe.modules.push_back({name, first_rank, 1, 1, 1, 1, 1, 1, ""});
    const json &m = modules.at(name), &dims = m.at("dims");
    recipe.modules.push_back(
        {name, m["rank_offset"],
         dims["tp"].get<int>() * dims["cp"].get<int>() * dims["pp"].get<int>() * dims["dp"].get<int>(), dims["tp"],
         dims["cp"], dims["pp"], 1, 1, ""});
    recipe.language_lanes = dims["dp"];
  };
  for (const auto& [name, targets] : edges.items()) {
    if (name != language) add(name);
  }
  add(language);
  for (const GoldenModule& module : recipe.modules)
    recipe.world = std::max(recipe.world, module.first_rank + module.ranks);
  return recipe;
}

class Pipeline : public testing::GoldenCaseProgram {};

TEST_P(Pipeline, StagesWarmUpAsTheReferences) {
  const json& c = GoldenCase("pipeline_cases", GetParam());
  GoldenRecipe recipe = RecipeOf(c.at("edges"), c.at("modules"));
  EXPECT_EQ(recipe.world, c.at("world_size"));
  if (GetParam() == "img_audio_llm_gen") {
    return ExpectRefused(recipe, "BridgeDirection",
                         "a module behind the language model: recipes have encoders and one language model");
  }
  for (const int microbatches : {1, 2, 4, 8}) {
    recipe.microbatches = microbatches;
    std::map<int, int> warmups;
    for (const auto& stage : ShowList(recipe, "schedule", "stages")) {
      EXPECT_EQ(stage["order"].size(), 2u * microbatches);
      for (const auto& rank : stage["ranks"]) warmups[rank] = stage["warmup"];
    }
    for (const json& rank : c.at("ranks")) {
      EXPECT_EQ(warmups.at(rank["rank"]), rank["warmup"][std::to_string(microbatches)])
          << "rank " << rank["rank"] << ", " << microbatches;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Pipeline, ::testing::ValuesIn(Ids("pipeline_cases")), CaseName);

class Stages : public testing::GoldenProgram {
 protected:
  static GoldenRecipe OneRank(const std::string& pattern) {
    GoldenRecipe recipe;
    recipe.modules = {{"language", 0, 1, 1, 1, 1, 1, 1, ""}};
    recipe.pattern = pattern;
    return recipe;
  }
};

TEST_F(Stages, OfModulesInACircleAreRefusedAsInTheReference) {
  for (const auto& [id, c] : Golden().at("pipeline_errors").items()) {
    ExpectRefused(RecipeOf(c.at("edges"), nullptr), "BridgeDirection", id);
  }
}

TEST_F(Stages, LayersAreCountedAsTheReferences) {
  for (const json& c : Golden().at("hybrid_patterns")) {
    const std::string id = c.at("id");
    if (c.at("pattern").is_null()) {
      ExpectRefused(OneRank(""), "MissingKey", "a model has layers");
      continue;
    }
    const GoldenRecipe recipe = OneRank(c.at("pattern"));
    if (!c.at("ok").get<bool>()) {
      ExpectRefused(recipe, "UnknownLayer", id);
    } else if (recipe.pattern.find_first_not_of("ME*-") != std::string::npos) {
      ExpectRefused(recipe, "NotBuiltYet", id);
    } else {
      const json layers = ShowList(recipe, "model", "modules")["language"]["layers"];
      EXPECT_EQ(layers.size(), c.at("total_layers").get<size_t>());
      for (const char* kind : {"M", "E", "*", "-"}) {
        EXPECT_EQ(std::count_if(layers.begin(), layers.end(), [&](const auto& layer) { return layer["kind"] == kind; }),
                  c["counts"][kind].get<int>())
            << id << kind;
      }
    }
  }
}

TEST_F(Stages, LayersAreCutAsTheReferences) {
  for (const json& c : Golden().at("hybrid_segments")) {
    const int pp = c.at("pp");
    std::string extra;
    if (!c.at("first").is_null()) extra += ", first_stage_layers: " + c["first"].dump();
    if (!c.at("last").is_null()) extra += ", last_stage_layers: " + c["last"].dump();
    GoldenRecipe recipe = OneRank(c.at("pattern"));
    recipe.modules = {{"language", 0, pp, 1, 1, pp, 1, 1, extra}};
    recipe.world = pp;
    // Without virtual stages there are as many segments as stages. The reference system silently leaves out two layers;
    // here the recipe is refused.
    const bool refused = !c.at("vp_stage").is_null() || c["stages"][0].contains("exception") ||
                         c.at("id") == "uneven_pp2_both_ignores_middle";
    if (refused) {
      ExpectRefused(recipe, "PatternSplit", c.at("id"));
      continue;
    }
    std::map<int, std::string> stages;
    const json model = Show(recipe, "model");
    for (const auto& layer : model["modules"]["language"]["layers"])
      stages[layer["stage"]] += layer["kind"].get<std::string>();
    for (const json& stage : c.at("stages"))
      EXPECT_EQ(stages[stage["pp_rank"]], stage["layers"].get<std::string>()) << c.at("id");
  }
}

}  // namespace
}  // namespace planwright
