#include "planner/compile/groups/derive_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/golden.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using Ranks = std::vector<std::vector<int>>;

Grid GridOf(const json& m) {
  return {m["rank_offset"], m["tp"], m["cp"], m["dp"], m["pp"], m["expt_tp"], m["ep"], m["expt_dp"]};
}

TEST(DeriveGroups, EveryGroupOfTheReferenceTopologies) {
  int compared = 0;
  for (const json& topology : Golden().at("topologies")) {
    Plan plan;
    for (const json& m : topology.at("modules")) {
      ASSERT_EQ(m.at("gtp_remat"), 1);
      plan.modules.push_back({.name = m.at("name"), .grid = GridOf(m)});
    }
    plan.groups = DeriveGroups(plan.modules, {}, {}, {});
    plan.world_size = topology.at("world_size");
    EXPECT_EQ(MembersOf(plan, plan.groups.front())[0].size(), topology.at("world_size").get<size_t>());
    for (const json& m : topology.at("modules")) {
      for (const auto& [ours, theirs] : UpstreamGroupNames()) {
        const Group* group = plan.FindGroup(m.at("name").get<std::string>() + "." + ours);
        ASSERT_NE(group, nullptr) << ours;
        EXPECT_EQ(MembersOf(plan, *group), m.at("groups").at(theirs).at("groups").get<Ranks>())
            << topology.at("id") << ours;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 81);
}

TEST(DeriveGroups, CreationOrder) {
  Bridge bridge = {.name = "bridge.images.language", .from = "images", .to = "language"};
  bridge.forward = {{1, 4, 0, 1}, {3, 6, 1, 2}};
  bridge.backward = {{4, 1, 0, 1}, {6, 3, 1, 2}};
  const std::vector<Group> groups = DeriveGroups({{.name = "images", .grid = {.first_rank = 0, .tp = 2, .dp = 2}},
                                                  {.name = "language", .grid = {.first_rank = 4, .tp = 2, .dp = 2}}},
                                                 {bridge}, {}, {});
  std::vector<std::string> names;
  std::set<std::string> unique;
  for (const Group& group : groups) {
    names.push_back(group.short_name);
    unique.insert(group.name);
    EXPECT_FALSE(group.used());
  }
  EXPECT_EQ(unique.size(), groups.size());
  ASSERT_EQ(groups.size(), 20u);
  EXPECT_EQ(groups.front().name, "world");
  EXPECT_THAT(std::vector(names.begin() + 1, names.begin() + 10),
              ElementsAre("tp", "cp", "pp", "dp_cp", "tp_cp", "tp_dp_cp", "ep", "ep_tp", "ep_dp"));
  EXPECT_EQ(groups[10].name, "language.tp");
  EXPECT_EQ(groups.back().name, "bridge.images.language");
  EXPECT_THAT(groups.back().ranks, ElementsAre(1, 3, 4, 6));
}

TEST(DeriveGroups, StreamsAreThoseOfTheProgramsAndOriginsThoseOfModulesAndBridges) {
  Bridge bridge = {.name = "bridge.images.language", .from = "images", .to = "language", .origin = 2};
  bridge.forward = {{0, 1, 0, 1}};
  Instruction gather{.kind = OpKind::kAllGather, .group = "language.tp"},
      reduce{.kind = OpKind::kAllReduce, .group = "language.tp", .stream = "reduce"},
      exchange{.kind = OpKind::kExchange};
  exchange.parts = {{.bridge = bridge.name}, {.group = "language.pp"}};
  Role role;
  role.step = {exchange};
  Plan plan;
  plan.groups = DeriveGroups({{.name = "images", .origin = 0}, {.name = "language", .origin = 1}}, {bridge},
                             {{.body = {reduce, gather}}}, {role});
  EXPECT_THAT(plan.FindGroup("language.tp")->streams, ElementsAre("", "reduce"));
  EXPECT_THAT(plan.FindGroup("language.pp")->streams, ElementsAre(""));
  EXPECT_THAT(plan.FindGroup(bridge.name)->streams, ElementsAre(""));
  EXPECT_FALSE(plan.FindGroup("images.tp")->used());
  EXPECT_EQ(plan.FindGroup("world")->origin, -1);
  EXPECT_EQ(plan.FindGroup("language.tp")->origin, 1);
  EXPECT_EQ(plan.FindGroup(bridge.name)->origin, 2);
}

}  // namespace
}  // namespace planwright
