#include "planner/compile/bridges/route_bridges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "planner/base/text/limits.h"
#include "planner/compile/bridges/transfers.h"
#include "tests/compile/bridges/golden_grid.h"
#include "tests/support/golden.h"
#include "tests/support/problems.h"
#include "tests/support/recipe_builder.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::Eq;
using Rows = std::vector<std::array<int64_t, 4>>;

Rows RowsOf(const std::vector<Transfer>& transfers) {
  Rows rows;
  for (const Transfer& t : transfers) rows.push_back({t.from_rank, t.to_rank, t.first_sample, t.end_sample});
  return rows;
}

Bridge Route(const Grid& encoder, const Grid& language, int64_t micro_samples) {
  Recipe recipe = BuildRecipe(
      {BuildEncoder(encoder.first_rank, encoder.ranks()), BuildLanguage(language.first_rank, language.ranks())});
  recipe.batch.micro_samples = micro_samples;
  Diagnostics diagnostics;
  auto bridges = RouteBridges(recipe, {encoder, language}, diagnostics);
  EXPECT_TRUE(bridges && bridges->size() == 1 && !diagnostics.has_errors());
  return bridges->at(0);
}

TEST(RouteBridges, EqualLanes) {
  const Bridge bridge = Route({.first_rank = 0, .tp = 2, .dp = 2}, {.first_rank = 4, .tp = 2, .dp = 2}, 1);
  EXPECT_EQ(bridge.name, "bridge.images.language");
  EXPECT_EQ(bridge.kind, "equal");
  EXPECT_THAT(RowsOf(bridge.forward), Eq(Rows{{1, 4, 0, 1}, {3, 6, 1, 2}}));
  EXPECT_THAT(RowsOf(bridge.backward), Eq(Rows{{4, 1, 0, 1}, {6, 3, 1, 2}}));
}

TEST(RouteBridges, FanOutAndFanIn) {
  const Bridge out = Route({.first_rank = 0, .dp = 2}, {.first_rank = 2, .dp = 4}, 1);
  EXPECT_EQ(out.kind, "fan_out");
  EXPECT_THAT(RowsOf(out.forward), Eq(Rows{{0, 2, 0, 1}, {0, 3, 1, 2}, {1, 4, 2, 3}, {1, 5, 3, 4}}));
  // One sample a lane: only two of four encoder lanes have work, the others send nothing.
  const Bridge in = Route({.first_rank = 0, .dp = 4}, {.first_rank = 4, .dp = 2}, 1);
  EXPECT_EQ(in.kind, "fan_in");
  EXPECT_THAT(RowsOf(in.forward), Eq(Rows{{0, 4, 0, 1}, {1, 5, 1, 2}}));
  EXPECT_THAT(RowsOf(Route({.first_rank = 0, .dp = 4}, {.first_rank = 4, .dp = 2}, 2).forward),
              Eq(Rows{{0, 4, 0, 1}, {1, 4, 1, 2}, {2, 5, 2, 3}, {3, 5, 3, 4}}));
}

TEST(RouteBridges, UnevenLanesShareSamples) {
  const Bridge bridge = Route({.first_rank = 0, .dp = 3}, {.first_rank = 3, .dp = 2}, 2);
  EXPECT_EQ(bridge.kind, "uneven");
  EXPECT_THAT(RowsOf(bridge.forward), Eq(Rows{{0, 3, 0, 2}, {1, 4, 2, 3}, {2, 4, 3, 4}}));
}

// Each destination lane gets exactly its samples, each once, from a rank that encoded them.
TEST(RouteBridges, EverySampleArrivesOnce) {
  for (int encoder_dp = 1; encoder_dp <= 5; ++encoder_dp) {
    for (int language_dp = 1; language_dp <= 5; ++language_dp) {
      for (int micro = 1; micro <= 3; ++micro) {
        const Grid encoder = {.first_rank = 0, .tp = 2, .dp = encoder_dp},
                   language = {.first_rank = 2 * encoder_dp, .dp = language_dp};
        const int64_t samples = language_dp * micro;
        std::map<int, std::vector<int64_t>> arrived;
        for (const Transfer& t : Route(encoder, language, micro).forward) {
          const LaneSamples own = SamplesOfLane(samples, encoder_dp, CoordinateOf(encoder, t.from_rank, Axis::kDp));
          EXPECT_TRUE(own.first <= t.first_sample && t.first_sample < t.end_sample && t.end_sample <= own.end);
          for (int64_t s = t.first_sample; s < t.end_sample; ++s) arrived[t.to_rank].push_back(s);
        }
        for (int lane = 0; lane < language_dp; ++lane) {
          std::vector<int64_t> wanted;
          for (int64_t s = lane * micro; s < (lane + 1) * micro; ++s) wanted.push_back(s);
          EXPECT_EQ(arrived[language.first_rank + lane], wanted);
        }
      }
    }
  }
}

// For any two layouts: every pair of lanes that share samples has a transfer, and no other pair. It goes from the last
// rank of the source lane on the last stage to the first rank of the destination lane on the first stage.
TEST(RouteBridges, AnyTwoLayouts) {
  const auto deals = [](int64_t samples, int lanes, int lane, int64_t sample) {
    const LaneSamples own = SamplesOfLane(samples, lanes, lane);
    return own.first <= sample && sample < own.end;
  };
  int compared = 0;
  for (const auto& [tp, cp, pp] :
       {std::tuple(1, 1, 1), std::tuple(2, 1, 3), std::tuple(1, 2, 2), std::tuple(2, 3, 2)}) {
    for (const auto& [tp2, cp2, pp2] : {std::tuple(1, 1, 1), std::tuple(4, 2, 2)}) {
      for (int source_dp = 1; source_dp <= 7; ++source_dp) {
        for (int destination_dp = 1; destination_dp <= 7; ++destination_dp) {
          const Grid source = {.tp = tp, .cp = cp, .dp = source_dp, .pp = pp};
          const Grid destination = {
              .first_rank = source.ranks(), .tp = tp2, .cp = cp2, .dp = destination_dp, .pp = pp2};
          for (int64_t samples : {destination_dp, 2 * destination_dp, 11}) {
            Rows wanted;
            for (int s = 0; s < source_dp; ++s) {
              for (int d = 0; d < destination_dp; ++d) {
                for (int64_t sample = 0; sample < samples; ++sample) {
                  if (!deals(samples, source_dp, s, sample) || !deals(samples, destination_dp, d, sample)) continue;
                  const int64_t from = tp * cp * (s + 1) - 1 + tp * cp * source_dp * (pp - 1),
                                to = destination.first_rank + tp2 * cp2 * d;
                  if (!wanted.empty() && wanted.back()[0] == from && wanted.back()[1] == to) {
                    ++wanted.back()[3];
                  } else {
                    wanted.push_back({from, to, sample, sample + 1});
                  }
                }
              }
            }
            EXPECT_EQ(RowsOf(LeaderTransfers(source, destination, samples)), wanted);
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, 4 * 2 * 49 * 3);
}

// Linear in lanes, so this takes no time.
TEST(RouteBridges, AHundredThousandLanes) {
  const Grid source = {.tp = 1, .dp = 32768}, destination = {.first_rank = 32768, .dp = 98304};
  EXPECT_EQ(LeaderTransfers(source, destination, 98304).size(), 98304u);
  const Grid together = {.tp = 1, .dp = 131072}, wide = {.tp = 8, .dp = 16384};
  // More than a plan may have are refused, so no more are made than show it.
  const auto too_many = static_cast<int64_t>(ColocatedTransfers(together, wide, 131072).size());
  EXPECT_GT(too_many, kMostTransfers);
  EXPECT_LE(too_many, kMostTransfers + 8);
  EXPECT_EQ(ColocatedTransfers(wide, together, 131072).size(), 131072u);
}

TEST(RouteBridges, ColocatedEveryRankGetsItsLaneOnce) {
  const std::vector<std::pair<Grid, Grid>> layouts = {
      {{.tp = 2, .dp = 4}, {.tp = 4, .dp = 2}}, {{.tp = 4, .dp = 2}, {.tp = 2, .dp = 4}},
      {{.tp = 1, .dp = 8}, {.tp = 8, .dp = 1}}, {{.tp = 8, .dp = 1}, {.tp = 1, .dp = 8}},
      {{.tp = 2, .dp = 3}, {.tp = 3, .dp = 2}}, {{.tp = 2, .dp = 2}, {.tp = 2, .dp = 2}}};
  for (const auto& [encoder, language] : layouts) {
    for (int micro = 1; micro <= 3; ++micro) {
      const Bridge bridge = Route(encoder, language, micro);
      EXPECT_EQ(bridge.kind, "colocated");
      const int64_t samples = language.dp * micro;
      for (const auto& [from, to, transfers] :
           {std::tuple(encoder, language, bridge.forward), std::tuple(language, encoder, bridge.backward)}) {
        std::map<int, std::vector<int64_t>> arrived;
        for (const Transfer& t : transfers) {
          const LaneSamples owned = SamplesOfLane(samples, from.dp, CoordinateOf(from, t.from_rank, Axis::kDp));
          EXPECT_TRUE(owned.first <= t.first_sample && t.end_sample <= owned.end);
          for (int64_t s = t.first_sample; s < t.end_sample; ++s) arrived[t.to_rank].push_back(s);
        }
        for (int rank = 0; rank < to.ranks(); ++rank) {
          const LaneSamples own = SamplesOfLane(samples, to.dp, CoordinateOf(to, rank, Axis::kDp));
          std::vector<int64_t> wanted;
          for (int64_t s = own.first; s < own.end; ++s) wanted.push_back(s);
          EXPECT_EQ(arrived[rank], wanted);
        }
      }
    }
  }
}

// Where the reference gathers among siblings, our ranks get rows from the same siblings. What each one sends is not
// compared: the reference cuts a tensor, we deal samples. Cases with cp or missing axes have no grid of ours.
TEST(RouteBridges, ColocatedSendersAreTheReferenceSiblings) {
  int compared = 0;
  for (const json& c : Golden().at("colocated_cases")) {
    if (!c.at("ok").get<bool>() || c.at("direction") != "fan_in") continue;
    const auto source = GoldenGrid(c.at("src")), destination = GoldenGrid(c.at("dest"));
    ASSERT_TRUE(source && destination);
    std::map<int, std::set<int>> senders;
    for (const Transfer& t : ColocatedTransfers(*source, *destination, source->dp))
      senders[t.to_rank].insert(t.from_rank);
    for (const json& group : c.at("gather_groups")) {
      for (const int rank : group) EXPECT_EQ(senders[rank], group.get<std::set<int>>());
    }
    ++compared;
  }
  EXPECT_GE(compared, 1);
}

std::vector<std::string> RouteProblems(const Recipe& recipe) {
  Diagnostics diagnostics;
  EXPECT_FALSE(RouteBridges(recipe, std::vector<Grid>(recipe.modules.size()), diagnostics));
  return KindsAndLines(diagnostics);
}

TEST(RouteBridges, RefusesBridgesThatJoinNothing) {
  const Recipe good = BuildRecipe({BuildEncoder(0, 1), BuildLanguage(1, 1)});
  Recipe recipe = good;
  recipe.bridges[0].to = {"langauge", Line(51)};
  EXPECT_THAT(RouteProblems(recipe), ElementsAre("UnknownBridgeModule:51"));
  recipe = good;
  std::swap(recipe.bridges[0].from, recipe.bridges[0].to);
  EXPECT_THAT(RouteProblems(recipe), ElementsAre("BridgeDirection:50"));
  recipe = good;
  recipe.bridges.push_back({.from = std::string("images"), .to = std::string("language"), .where = Line(52)});
  EXPECT_THAT(RouteProblems(recipe), ElementsAre("RepeatedBridge:52"));
  recipe = good;
  recipe.bridges.clear();
  EXPECT_THAT(RouteProblems(recipe), ElementsAre("MissingBridge:200"));
}

}  // namespace
}  // namespace planwright
