// Who sends which samples to whom. Counts of lanes that do not divide each other are refused by the reference and dealt
// by samples here; so are its row splits, which are those of the samples; where modules share ranks, every rank is
// handed its own lane's samples.
#include "tests/bridges/golden_grid.h"
#include "tests/golden/golden_program.h"

namespace planwright {
namespace {

using nlohmann::json;
using testing::CaseName;
using testing::GoldenModule;
using testing::GoldenRecipe;
using testing::Ids;

GoldenModule ModuleOn(const char* name, const Grid& grid) {
  return {name, grid.first_rank, grid.ranks(), grid.tp, grid.cp, grid.pp, 1, 1, ""};
}

GoldenRecipe BetweenGrids(const Grid& from, const Grid& to) {
  GoldenRecipe recipe;
  recipe.modules = {ModuleOn("images", from), ModuleOn("language", to)};
  recipe.world = std::max(from.first_rank + from.ranks(), to.first_rank + to.ranks());
  recipe.language_lanes = to.dp;
  return recipe;
}

// Of one bridge, by what `plan show bridges` calls it.
class BridgeProgram : public testing::GoldenProgram {
 protected:
  json Bridge(const GoldenRecipe& recipe) { return ShowList(recipe, "bridges", "bridges").at(0); }
  json Transfers(const GoldenRecipe& recipe) { return Bridge(recipe).at("transfers"); }
};

int64_t SamplesOf(const json& transfer) {
  return transfer["microbatch_samples"][1].get<int64_t>() - transfer["microbatch_samples"][0].get<int64_t>();
}

class Bridging : public BridgeProgram, public ::testing::WithParamInterface<std::string> {};

TEST_P(Bridging, SendsAsTheReferenceOrPlansWhatItRefuses) {
  const json& c = GoldenCase("bridge_cases", GetParam());
  const GoldenPlaces from = PlacesOf(c.at("src")), to = PlacesOf(c.at("dest"));
  GoldenRecipe recipe = BetweenGrids(from.grid, to.grid);
  // A microbatch of so many samples that every encoder lane has one: the reference needs that for fan-in.
  while (to.grid.dp * recipe.micro_samples % from.grid.dp != 0 && recipe.micro_samples < 64) ++recipe.micro_samples;
  const json bridge = Bridge(recipe);
  json sends = json::object(), expected = json::object();
  int64_t samples = 0;
  for (const auto& transfer : bridge["transfers"]) {
    sends[std::to_string(transfer["from_rank"].get<int>())].push_back(transfer["to_rank"]);
    samples += SamplesOf(transfer);
  }
  EXPECT_EQ(samples, to.grid.dp * recipe.micro_samples) << "every sample travels once";
  if (!c.at("ok").get<bool>()) {
    EXPECT_EQ(c.at("code"), "LEADERS_NOT_DIVISIBLE");
    EXPECT_EQ(bridge["kind"], "uneven");
    return;
  }
  EXPECT_NE(bridge["kind"], "uneven");
  for (const auto& [sender, receivers] : c.at("sends").items()) {
    json& list = expected[std::to_string(from.ours.at(std::stoi(sender)))];
    for (const json& receiver : receivers) list.push_back(to.ours.at(receiver));
  }
  EXPECT_EQ(sends, expected);
}

INSTANTIATE_TEST_SUITE_P(Golden, Bridging, ::testing::ValuesIn(Ids("bridge_cases")), CaseName);

class Bridges : public BridgeProgram {};

TEST_F(Bridges, LeadAtTheReferencesRanks) {
  for (const json& c : Golden().at("leader_cases")) {
    const Grid grid = PlacesOf(c).grid;
    ASSERT_EQ(grid.first_rank, 0);
    json senders = json::array(), receivers = json::array();
    for (const auto& transfer : Transfers(BetweenGrids(grid, {.first_rank = grid.ranks(), .dp = grid.dp}))) {
      senders.push_back(transfer["from_rank"]);
    }
    Grid behind = grid;
    behind.first_rank = grid.dp;
    for (const auto& transfer : Transfers(BetweenGrids({.dp = grid.dp}, behind))) {
      receivers.push_back(transfer["to_rank"].get<int>() - behind.first_rank);
    }
    EXPECT_EQ(senders, c["as_source"]["leaders"]) << c.at("id");
    EXPECT_EQ(receivers, c["as_dest"]["leaders"]) << c.at("id");
  }
}

// The reference cuts rows: by the counts of each sample where it has them, else evenly. Ours names samples, and each
// sample's rows follow from its text on both sides: the same rows wherever the reference's are right.
TEST_F(Bridges, SplitRowsAsTheirSamplesAre) {
  for (const json& c : Golden().at("bridge_split_cases")) {
    const int peers = c.at("num_splits");
    const int64_t rows = c.at("shape")[0];
    const json transfers = Transfers(BetweenGrids({}, {.first_rank = 1, .dp = peers}));
    ASSERT_EQ(transfers.size(), static_cast<size_t>(peers));
    for (int peer = 0; peer < peers; ++peer) {
      EXPECT_EQ(transfers[peer]["microbatch_samples"], json::array({peer, peer + 1}));
      const int64_t of_sample = c.at("metadata").is_null() ? rows / peers : c["metadata"][peer].get<int64_t>();
      EXPECT_EQ(of_sample, c.at("split_shapes")[peer][0]) << c.at("id");
    }
  }
}

TEST_F(Bridges, BetweenModulesThatShareRanksKnowBothGrids) {
  for (const json& c : Golden().at("colocated_cases")) {
    const Grid from = PlacesOf(c.at("src")).grid, to = PlacesOf(c.at("dest")).grid;
    GoldenRecipe recipe = BetweenGrids(from, to);
    recipe.micro_samples = 4;
    if (!c.at("ok").get<bool>() && from.cp > 1) {
      ExpectRefused(recipe, "ColocatedLayout", c.at("id"));
      continue;
    }
    EXPECT_EQ(Bridge(recipe)["kind"], "colocated");
    if (!c.at("ok").get<bool>()) {
      EXPECT_EQ(c.at("id"), "missing_tp") << "an axis that is not named has one rank here";
      continue;
    }
    for (const auto& rank : ShowList(recipe, "ranks", "ranks")) {
      const std::string key = std::to_string(rank["rank"].get<int>());
      const auto place = [&](const char* module) {
        const auto& dense = rank["modules"][module]["dense"];
        return json::array({dense["dp"], dense["tp"]});
      };
      EXPECT_EQ(place("images"), c["src_pos"][key]);
      EXPECT_EQ(place("language"), c["dest_pos"][key]);
    }
  }
}

}  // namespace
}  // namespace planwright
