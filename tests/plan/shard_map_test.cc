#include "planner/plan/shard_map.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace planwright {
namespace {

Module Make(Parameter parameter, Storage storage) {
  Module module;
  module.parameters = {std::move(parameter)};
  storage.parameters = {0};
  module.storages = {std::move(storage)};
  return module;
}

// The rows of a tp rank by the definition, row by row: a row belongs to rank r if it lies in part r of its segment.
std::vector<int64_t> RowsByDefinition(const std::vector<int64_t>& segments, int tp, int rank) {
  std::vector<int64_t> rows;
  int64_t first = 0;
  for (int64_t segment : segments) {
    for (int64_t i = 0; i < segment; ++i) {
      if (i / (segment / tp) == rank) rows.push_back(first + i);
    }
    first += segment;
  }
  return rows;
}

// 5 rows on 4 ranks: two rows of room on each, of which the third rank fills one and the last none.
TEST(ShardMap, PaddingIsInNoRun) {
  const std::vector<std::vector<ElementRun>> wanted = {{{0, 0, 6}}, {{0, 6, 6}}, {{0, 12, 3}}, {}};
  for (int rank = 0; rank < 4; ++rank) {
    const Module module =
        Make({.name = "w", .file_name = "f", .shape = {5, 3}, .shard_dim = 0, .segments = {5}, .padded = true},
             {.frame = "m", .slot = "w", .shape = {2, 3}});
    const auto slices = SlicesOf(module, module.storages[0], {.tp = 4, .tp_rank = rank});
    ASSERT_EQ(slices.size(), 1u);
    EXPECT_EQ(slices[0].runs, wanted[static_cast<size_t>(rank)]) << rank;
  }
}

TEST(ShardMap, CutsEachSegmentByItself) {
  Parameter parameter{.name = "in_proj", .file_name = "f", .shape = {14, 3}, .shard_dim = 0, .segments = {4, 8, 2}};
  for (int rank = 0; rank < 2; ++rank) {
    const Module module = Make(parameter, {.frame = "m.layers.0", .slot = "in_proj", .shape = {7, 3}});
    const auto slices = SlicesOf(module, module.storages[0], {.tp = 2, .tp_rank = rank});
    ASSERT_EQ(slices.size(), 1u);
    std::vector<int64_t> rows;
    int64_t local = 0;
    for (const ElementRun& run : slices[0].runs) {
      EXPECT_EQ(run.local, local);
      for (int64_t i = 0; i < run.count; i += 3) rows.push_back((run.whole + i) / 3);
      local += run.count;
    }
    EXPECT_EQ(rows, RowsByDefinition(parameter.segments, 2, rank));
  }
}

TEST(ShardMap, CutsAnInnerDimAsARunPerRow) {
  const Module module =
      Make({.name = "out_proj", .shape = {3, 8}, .shard_dim = 1}, {.frame = "m", .slot = "out", .shape = {3, 4}});
  const auto slices = SlicesOf(module, module.storages[0], {.tp = 2, .tp_rank = 1});
  EXPECT_EQ(slices[0].runs, (std::vector<ElementRun>{{0, 4, 4}, {4, 12, 4}, {8, 20, 4}}));
}

TEST(ShardMap, NumbersExpertsByTheirCoordinateOnEp) {
  Parameter parameter{.name = "experts.{expert}.up", .file_name = "x.{expert}.up", .shape = {2, 3}, .experts = 4};
  const Module module = Make(parameter, {.frame = "m", .slot = "up", .shape = {2, 2, 3}});
  const auto slices = SlicesOf(module, module.storages[0], {.ep = 2, .ep_rank = 1});
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].name, "experts.2.up");
  EXPECT_EQ(slices[1].file_name, "x.3.up");
  EXPECT_EQ(slices[1].runs, (std::vector<ElementRun>{{6, 0, 6}}));
}

TEST(ShardMap, JoinsLocalPartsOfSeveralParameters) {
  Module module;
  module.parameters = {{.name = "q", .shape = {4, 2}, .shard_dim = 0}, {.name = "k", .shape = {2, 2}, .shard_dim = 0}};
  module.storages = {{.frame = "m", .slot = "qkv", .shape = {3, 2}, .parameters = {0, 1}}};
  const auto slices = SlicesOf(module, module.storages[0], {.tp = 2, .tp_rank = 1});
  EXPECT_EQ(slices[0].runs, (std::vector<ElementRun>{{0, 4, 4}}));
  EXPECT_EQ(slices[1].runs, (std::vector<ElementRun>{{4, 2, 2}}));
}

// Of each expert first its part of the first parameter, then its part of the second: the operation reads one stack.
TEST(ShardMap, JoinsTheParametersOfEachExpert) {
  Module module;
  module.parameters = {{.name = "{expert}.gate", .shape = {4, 3}, .experts = 4, .shard_dim = 0},
                       {.name = "{expert}.up", .shape = {2, 3}, .experts = 4, .shard_dim = 0}};
  module.storages = {{.frame = "m", .slot = "gate_up", .shape = {2, 3, 3}, .parameters = {0, 1}}};
  const auto slices =
      SlicesOf(module, module.storages[0], {.expert_tp = 2, .expert_tp_rank = 1, .ep = 2, .ep_rank = 1});
  std::vector<std::pair<std::string, std::vector<ElementRun>>> found;
  for (const PublishedSlice& slice : slices) found.emplace_back(slice.name, slice.runs);
  const decltype(found) wanted = {
      {"2.gate", {{0, 6, 6}}}, {"2.up", {{6, 3, 3}}}, {"3.gate", {{9, 6, 6}}}, {"3.up", {{15, 3, 3}}}};
  EXPECT_EQ(found, wanted);
}

TEST(ShardMap, ClipsToAShard) {
  const std::vector<ElementRun> runs = {{0, 100, 10}, {10, 200, 10}};
  EXPECT_EQ(ClipRuns(runs, 8, 13), (std::vector<ElementRun>{{0, 108, 2}, {2, 200, 3}}));
  EXPECT_TRUE(ClipRuns(runs, 20, 30).empty());
}

TEST(ShardMapDeathTest, RefusesAStorageThatDoesNotFit) {
  const Module module =
      Make({.name = "w", .shape = {4, 2}, .shard_dim = 0}, {.frame = "m", .slot = "w", .shape = {4, 2}});
  EXPECT_DEATH(SlicesOf(module, module.storages[0], {.tp = 2}), "elements on a rank");
}

}  // namespace
}  // namespace planwright
