// Ranks and groups of modules, compared with values of the reference system, and the layouts that it accepts or
// refuses. Intended differences are marked: there is no gtp axis, an encoder has no switches of its own, and GPUs after
// the last module are idle and not an error.
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"
#include "tests/golden/golden_program.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using nlohmann::json;
using testing::CaseName;
using testing::GoldenRecipe;
using testing::Ids;
using testing::ModuleOf;

// FNV-1a 64 over ranks joined by "," and groups joined by ";", as the golden file has it.
std::string Fnv(const json& groups) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&](const std::string& text) {
    for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  };
  for (size_t g = 0; g < groups.size(); ++g) {
    if (g > 0) add(";");
    for (size_t r = 0; r < groups[g].size(); ++r) add((r > 0 ? "," : "") + std::to_string(groups[g][r].get<int>()));
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

class Topology : public testing::GoldenCaseProgram {
 protected:
  static void ExpectGroups(const json& m, std::map<std::string, json>& groups) {
    int compared = 0;
    for (const auto& [ours, theirs] : UpstreamGroupNames()) {
      const json& members = groups.at(m.at("name").get<std::string>() + "." + ours);
      const json& expected = m.at("groups").at(theirs);
      EXPECT_EQ(members.size(), expected.at("count").get<size_t>()) << ours;
      EXPECT_EQ(members[0].size(), expected.at("group_size").get<size_t>()) << ours;
      EXPECT_EQ(Fnv(members), expected.at("fnv").get<std::string>()) << ours;
      EXPECT_EQ(members.front(), expected.at("first")) << ours;
      EXPECT_EQ(members.back(), expected.at("last")) << ours;
      if (expected.contains("groups")) {
        EXPECT_EQ(members, expected.at("groups")) << ours;
      }
      ++compared;
    }
    EXPECT_EQ(compared, 9);
  }

  // `modules`: of the golden case, which says who is together along each axis.
  static void ExpectCoordinates(const json& ranks, const json& modules) {
    for (const auto& rank : ranks) {
      ASSERT_FALSE(rank["role"].get<std::string>().empty());
      int compared = 0;
      for (const json& m : modules) {
        if (!rank["modules"].contains(m.at("name"))) continue;
        const json& coordinates = rank["modules"][m.at("name").get<std::string>()];
        for (const char* axis : {"tp", "cp", "dp", "pp"}) {  // index in its tp group, and so on
          for (const json& group : m.at("groups").at(axis).at("groups")) {
            const auto it = std::find(group.begin(), group.end(), rank["rank"].get<int>());
            if (it == group.end()) continue;
            EXPECT_EQ(coordinates["dense"][axis], it - group.begin()) << rank["rank"] << axis;
            ++compared;
          }
        }
      }
      EXPECT_EQ(compared, 4 * rank["modules"].size()) << rank["rank"];
    }
  }
};

TEST_P(Topology, GroupsRanksAndBridgesAreTheReferences) {
  const json& c = GoldenCase("topologies", GetParam());
  GoldenRecipe recipe;
  recipe.world = c.at("world_size");
  for (const json& m : c.at("modules")) {
    ASSERT_EQ(m.at("gtp_remat"), 1) << "there is no gtp axis";
    recipe.modules.push_back(ModuleOf(m));
  }
  recipe.language_lanes = c.at("modules").back().at("dp");
  std::map<std::string, json> groups;  // "language.tp" -> members
  for (const auto& group : ShowList(recipe, "groups", "groups")) {
    if (!group["module"].is_null())
      groups[group["module"].get<std::string>() + "." + group["name"].get<std::string>()] = group["members"];
  }
  for (const json& m : c.at("modules")) ExpectGroups(m, groups);
  const json ranks = Show(recipe, "ranks");
  EXPECT_EQ(ranks["world_size"], c.at("world_size"));
  ExpectCoordinates(ranks["ranks"], c.at("modules"));

  const json bridges = ShowList(recipe, "bridges", "bridges");
  ASSERT_EQ(bridges.size(), c.value("bridges", json::array()).size());
  for (size_t b = 0; b < bridges.size(); ++b) {
    const json& expected = c.at("bridges")[b];
    EXPECT_EQ(bridges[b]["from"], expected.at("src"));
    EXPECT_EQ(bridges[b]["to"], expected.at("dest"));
    json sends = json::object(), receives = json::object();
    for (const auto& transfer : bridges[b]["transfers"]) {
      sends[std::to_string(transfer["from_rank"].get<int>())].push_back(transfer["to_rank"]);
      receives[std::to_string(transfer["to_rank"].get<int>())].push_back(transfer["from_rank"]);
    }
    EXPECT_EQ(sends, expected.at("sends"));
    EXPECT_EQ(receives, expected.at("recvs"));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Topology, ::testing::ValuesIn(Ids("topologies")), CaseName);

class Layouts : public testing::GoldenProgram {};

// The reference system refuses ranks after the last module. Here they are a lint (PW0212).
bool LeavesRanksOver(const json& c) {
  return c.at("id") == "colocated_with_gap" || c.at("id") == "uncovered_tail" || c.at("id") == "gap_at_end";
}

TEST_F(Layouts, AreAcceptedAndRefusedAsTheReferenceDoes) {
  const std::map<std::string, std::string> kinds = {{"OVERLAP_PARTIAL", "PlacementsOverlap"},
                                                    {"DENSE_NOT_DIVISIBLE", "GridDoesNotFit"},
                                                    {"WORLD_NOT_COVERED", "RanksNotCovered"}};
  for (const json& c : Golden().at("topology_validation")) {
    GoldenRecipe recipe;
    recipe.world = c.at("world_size");
    for (const json& m : c.at("specs")) recipe.modules.push_back(ModuleOf(m));
    recipe.language_lanes = recipe.modules.back().ranks / recipe.modules.back().tp;
    if (c.at("ok").get<bool>() || LeavesRanksOver(c)) {
      EXPECT_TRUE(Validate(recipe).valid) << c.at("id");
    } else {
      ExpectRefused(recipe, kinds.at(c.at("code")), c.at("id"));
    }
  }
}

// The arguments of the reference system as a recipe. Arguments without a counterpart are put into `parallel`, where
// they are unknown keys.
GoldenRecipe RecipeOf(const json& c) {
  const json& a = c.at("args");
  GoldenRecipe recipe;
  recipe.world = c.at("world_size");
  if (!a.value("llm_only", false)) {
    const int tp = a.value("encoder_tp", 2), dp = a.value("encoder_dp", 2);
    recipe.modules.push_back({"images", 0, tp * dp, tp, 1, 1, 1, 1, ""});
  }
  const int tp = a.value("llm_tp", 2), dp = a.value("llm_dp", 2);
  recipe.modules.push_back({"language", a.value("llm_offset", 4), tp * dp, tp, 1, 1, a.value("llm_ep", 1), 1, ""});
  if (a.contains("tensor_parallel_num_weight_shards")) {
    recipe.modules.back().extra = ", weight_shards: " + a["tensor_parallel_num_weight_shards"].dump();
  }
  if (a.value("num_experts", 1) == 0) recipe.pattern = "M*M*M*M*M*M*";
  recipe.language_lanes = dp;
  recipe.micro_samples = a.value("micro_batch_size", 1);
  if (a.value("overlap_grad_reduce", false)) recipe.gradients = "{overlap_reduce: true}";
  return recipe;
}

// Intended differences: the diagnostic of each case; "" means that the recipe is accepted.
const std::map<std::string, std::string> kOtherwise = {
    {"shards_lt_tp", "UnknownKey"},         // no gtp axis
    {"experts_zero_ignored", "NoExperts"},  // the reference system ignores ep without experts
    {"llm_only_enc_overlap", ""},           // overlap is a setting of all modules, not of an encoder
    {"uncovered_tail", ""},                 // a lint
};

TEST_F(Layouts, ArgumentsAreAcceptedAndRefusedAsTheReferenceDoes) {
  for (const json& c : Golden().at("args_validation")) {
    const std::string id = c.at("id");
    const GoldenRecipe recipe = RecipeOf(c);
    const auto otherwise = kOtherwise.find(id);
    if (otherwise != kOtherwise.end() && !otherwise->second.empty()) {
      ExpectRefused(recipe, otherwise->second, id);
      continue;
    }
    ASSERT_TRUE(c.at("ok").get<bool>() || otherwise != kOtherwise.end()) << id;
    const json groups = Show(recipe, "groups");
    for (const json& spec : c.value("specs", json::array())) {
      const size_t lanes = spec["dp"].get<size_t>() * spec["cp"].get<size_t>();
      int compared = 0;
      for (const auto& [name, size] : std::map<std::string, size_t>{
               {"tp", spec["tp"]}, {"dp_cp", lanes}, {"ep", spec["ep"]}, {"ep_dp", spec["expt_dp"]}}) {
        for (const auto& group : groups["groups"]) {
          if (group["module"] != spec["name"] || group["name"] != name) continue;
          EXPECT_EQ(group["members"][0].size(), size) << id << name;
          ++compared;
        }
      }
      EXPECT_EQ(compared, 4) << id << spec["name"];
    }
  }
}

TEST_F(Layouts, HaveNoWeightShards) {
  for (const json& c : Golden().at("weight_shards")) {
    GoldenRecipe recipe;
    recipe.world = c.at("tp");
    recipe.modules = {{"language", 0, c.at("tp"), c.at("tp"), 1, 1, 1, 1, ", weight_shards: " + c.at("shards").dump()}};
    ExpectRefused(recipe, "UnknownKey", "there is no gtp axis");
  }
}

// The grids that a recipe can have: our axes, in our order, and the expert view. axis_test covers the other grids.
TEST_F(Layouts, GroupRanksAsTheReferencesGrids) {
  const std::map<std::set<std::string>, std::string> names = {
      {{"tp"}, "tp"},          {{"cp"}, "cp"},          {{"pp"}, "pp"},
      {{"dp", "cp"}, "dp_cp"}, {{"tp", "cp"}, "tp_cp"}, {{"tp", "dp", "cp"}, "tp_dp_cp"},
      {{"ep"}, "ep"},          {{"expt_tp"}, "ep_tp"},  {{"expt_dp"}, "ep_dp"}};
  int compared = 0;
  for (const json& c : Golden().at("grid_cases")) {
    if (!c.contains("view") || c["shape"][1] != 1 || c["view"]["shape"][2] != 1) continue;  // no gtp axis
    const json &s = c["shape"], &v = c["view"]["shape"];
    const int offset = c.at("rank_offset");
    GoldenRecipe recipe;
    recipe.world = offset + c.at("size").get<int>();
    if (offset > 0) recipe.modules.push_back({"images", 0, offset, 1, 1, 1, 1, 1, ""});
    recipe.modules.push_back({"language", offset, c.at("size"), s[0], s[2], s[4], v[1], v[0], ""});
    recipe.language_lanes = s[3];
    std::map<std::string, json> groups;
    for (const auto& group : ShowList(recipe, "groups", "groups")) {
      if (group["module"] == "language") groups[group["name"]] = group["members"];
    }
    for (const char* list : {"enum", "view_enum"}) {
      for (const json& query : c.at(list)) {
        std::set<std::string> dims;
        for (const std::string dim : query.at("dims")) {
          if (dim.find("gtp") == std::string::npos) dims.insert(dim);
        }
        if (!names.contains(dims)) continue;  // no communication uses these
        EXPECT_EQ(groups.at(names.at(dims)), query.at("groups")) << c.at("id") << query.at("dims");
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 20);
}

TEST_F(Layouts, MayBeSmallerThanTheCluster) {
  for (const json& c : Golden().at("grid_errors")) {
    if (!c.at("ok").get<bool>()) continue;
    GoldenRecipe recipe;
    recipe.world = c.at("world_size");
    recipe.modules = {{"language", 0, c.at("shape")[0], c.at("shape")[0], 1, 1, 1, 1, ""}};
    EXPECT_TRUE(Validate(recipe).valid) << c.at("id");
  }
}

// In the reference system a view is a list of sizes and names, which can contradict the base grid. Here views are named
// sizes of one grid with one pp. A recipe cannot express the contradictions, and a plan that has one is refused.
TEST(Views, CannotContradictTheirGrid) {
  const auto rules_of = [](const std::function<void(Plan&)>& damage) {
    Diagnostics problems;
    Plan plan = *CompileRecipe(testing::TinyRecipe({2, 2, 4, 2, 4, false}), problems);
    damage(plan);
    std::set<std::string> rules;
    for (const Violation& violation : VerifyPlan(plan)) rules.insert(violation.rule);
    return rules;
  };
  const auto set_axes = [](View view, std::vector<Axis> axes) {
    return [view, axes](Plan& plan) {
      plan.groups.at(1).view = view;
      plan.groups.at(1).axes = axes;
    };
  };
  const std::map<std::string, std::pair<std::string, std::function<void(Plan&)>>> damages = {
      {"VIEW_DUPLICATE_SHARED", {"V2", set_axes(View::kExpert, {Axis::kPp, Axis::kPp})}},
      {"SHARED_DIM_NOT_IN_VIEW", {"V2", set_axes(View::kExpert, {Axis::kDp})}},
      {"SHARED_DIM_MEMBERSHIP", {"V1", [](Plan& plan) { plan.modules[1].grid.ep *= 2; }}}};
  for (const json& c : Golden().at("grid_errors")) {
    if (c.at("ok").get<bool>()) continue;  // Layouts.MayBeSmallerThanTheCluster
    if (c.at("code") == "LEN_MISMATCH") {
      Diagnostics problems;
      std::string text = WritePlan(*CompileRecipe(testing::TinyRecipe({}), problems));
      const size_t at = text.find(",\"expert_dp\":");
      ASSERT_NE(at, std::string::npos);
      EXPECT_FALSE(ReadPlan(text.erase(at, text.find_first_of(",}", at + 1) - at)).ok());
    } else {
      const auto& [rule, damage] = damages.at(c.at("code"));
      EXPECT_THAT(rules_of(damage), ::testing::Contains(rule)) << c.at("id");
    }
  }
}

}  // namespace
}  // namespace planwright
