#include "planner/compile/bridges/transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compile/bridges/golden_grid.h"
#include "tests/support/golden.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// Senders and receivers of a bridge to, or from, another grid with as many lanes: one for each lane.
std::vector<int> SendersOf(const Grid& grid) {
  std::vector<int> ranks;
  for (const Transfer& transfer : LeaderTransfers(grid, {.dp = grid.dp}, grid.dp)) ranks.push_back(transfer.from_rank);
  return ranks;
}

std::vector<int> ReceiversOf(const Grid& grid) {
  std::vector<int> ranks;
  for (const Transfer& transfer : LeaderTransfers({.dp = grid.dp}, grid, grid.dp)) ranks.push_back(transfer.to_rank);
  return ranks;
}

TEST(Transfers, LeadersEqualTheReference) {
  int compared = 0;
  for (const json& c : Golden().at("leader_cases")) {
    const auto grid = GoldenGrid(c);
    if (!grid) continue;
    EXPECT_EQ(SendersOf(*grid), c["as_source"]["leaders"].get<std::vector<int>>()) << c.at("id");
    EXPECT_EQ(ReceiversOf(*grid), c["as_dest"]["leaders"].get<std::vector<int>>()) << c.at("id");
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

TEST(Transfers, TheLastRankOfALaneSendsAndTheFirstReceives) {
  const Grid grid = {.tp = 2, .dp = 2, .pp = 2};
  EXPECT_THAT(SendersOf(grid), ElementsAre(5, 7));
  EXPECT_THAT(ReceiversOf(grid), ElementsAre(0, 2));
}

// With a block of samples that both counts of lanes divide, dealing samples gives the reference's send map.
TEST(Transfers, SendMapsEqualTheReference) {
  int compared = 0;
  for (const json& c : Golden().at("bridge_cases")) {
    const auto source = GoldenGrid(c.at("src")), destination = GoldenGrid(c.at("dest"));
    if (!source || !destination) continue;  // another axis order
    if (!c.at("ok").get<bool>()) {
      // The reference refuses lane counts that do not divide each other. Samples can be dealt to any counts.
      EXPECT_EQ(c.at("code"), "LEADERS_NOT_DIVISIBLE");
      EXPECT_EQ(BridgeKind(*source, *destination), "uneven") << c.at("id");
      continue;
    }
    EXPECT_EQ(SendersOf(*source), c.at("src_leaders").get<std::vector<int>>()) << c.at("id");
    EXPECT_EQ(ReceiversOf(*destination), c.at("dest_leaders").get<std::vector<int>>()) << c.at("id");
    json sends = json::object(), receives = json::object();
    for (const Transfer& transfer : LeaderTransfers(*source, *destination, source->dp * destination->dp)) {
      sends[std::to_string(transfer.from_rank)].push_back(transfer.to_rank);
      receives[std::to_string(transfer.to_rank)].push_back(transfer.from_rank);
    }
    EXPECT_EQ(sends, c.at("sends")) << c.at("id");
    EXPECT_EQ(receives, c.at("recvs")) << c.at("id");
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

TEST(Transfers, SendMapsOfTheReferenceTopologies) {
  int compared = 0;
  for (const json& topology : Golden().at("topologies")) {
    if (!topology.contains("bridges")) continue;
    std::map<std::string, Grid> grids;
    for (const json& m : topology.at("modules"))
      grids[m.at("name")] = {m["rank_offset"], m["tp"], m["cp"], m["dp"], m["pp"]};
    for (const json& c : topology.at("bridges")) {
      json sends = json::object();
      const Grid &from = grids.at(c.at("src")), &to = grids.at(c.at("dest"));
      for (const Transfer& transfer : LeaderTransfers(from, to, from.dp * to.dp)) {
        sends[std::to_string(transfer.from_rank)].push_back(transfer.to_rank);
      }
      EXPECT_EQ(sends, c.at("sends")) << topology.at("id");
      ++compared;
    }
  }
  EXPECT_GE(compared, 3);
}

}  // namespace
}  // namespace planwright
