// Which rank sends which samples to which rank, compared with the reference system. It refuses lane counts that do not
// divide each other; here samples are dealt, so any counts work. Its row splits are compared with the rows of our
// samples. On colocated modules every rank receives the samples of its own lane.
#include "tests/compile/bridges/golden_grid.h"
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

// One bridge in the JSON of `plan show bridges`.
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
  const GoldenRanks from = RanksOf(c.at("src")), to = RanksOf(c.at("dest"));
  GoldenRecipe recipe = BetweenGrids(from.grid, to.grid);
  // As many samples in a microbatch as there are encoder lanes: the reference system requires it for fan-in.
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
    const Grid grid = RanksOf(c).grid;
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

// The reference system splits rows: by the row counts of the samples if it has them, else evenly. Our plan assigns
// samples, and both sides know the rows of a sample from its text. The rows are equal in all cases in which the
// reference is right.
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
    const Grid from = RanksOf(c.at("src")).grid, to = RanksOf(c.at("dest")).grid;
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
      const auto dp_and_tp = [&](const char* module) {
        const auto& dense = rank["modules"][module]["dense"];
        return json::array({dense["dp"], dense["tp"]});
      };
      EXPECT_EQ(dp_and_tp("images"), c["src_pos"][key]);
      EXPECT_EQ(dp_and_tp("language"), c["dest_pos"][key]);
    }
  }
}

}  // namespace
}  // namespace planwright
