#include "planner/plan/axis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tests/support/golden.h"

namespace planwright {
namespace {

using nlohmann::json;
using Ranks = std::vector<std::vector<int>>;

// A recorded grid has dims of any names and number. Its dims of more than one rank become our axes tp, cp, dp, pp, in
// order: the enumeration does not depend on names.
struct GridWithOurAxes {
  Grid grid;
  std::map<std::string, Axis> axis;  // by the recorded name of the dim
};

// None if more than four dims have several ranks: we have no fifth axis.
std::optional<GridWithOurAxes> WithOurAxes(const json& shape, const json& dims, int offset) {
  GridWithOurAxes result;
  result.grid.first_rank = offset;
  int* const sizes[] = {&result.grid.tp, &result.grid.cp, &result.grid.dp, &result.grid.pp};
  size_t used = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (used == 4) return std::nullopt;
    *sizes[used] = shape[i];
    result.axis[dims[i]] = kDenseAxes[used++];
  }
  result.grid.expert_dp = result.grid.ranks() / result.grid.pp;
  return result;
}

int CompareEnumeration(const GridWithOurAxes& renamed, const json& enumeration, const std::string& id) {
  int compared = 0;
  for (const json& query : enumeration) {
    std::vector<Axis> axes;
    for (const std::string dim : query.at("dims")) {
      if (renamed.axis.contains(dim)) axes.push_back(renamed.axis.at(dim));  // others have one rank
    }
    EXPECT_EQ(GroupsOver(renamed.grid, View::kDense, axes), query.at("groups").get<Ranks>())
        << id << " " << query.at("dims");
    ++compared;
  }
  return compared;
}

// Recorded values of Megatron-LM's process groups (tests/golden/upstream_public.json).
TEST(Axis, GroupsEqualTheRecordedEnumeration) {
  int compared = 0;
  for (const json& c : Golden().at("grid_cases")) {
    if (const auto base = WithOurAxes(c.at("shape"), c.at("dim_names"), c.at("rank_offset"))) {
      EXPECT_EQ(base->grid.ranks(), c.at("size").get<int>());
      compared += CompareEnumeration(*base, c.at("enum"), c.at("id"));
    }
    if (!c.contains("view")) continue;
    if (const auto view = WithOurAxes(c.at("view").at("shape"), c.at("view").at("dim_names"), c.at("rank_offset"))) {
      compared += CompareEnumeration(*view, c.at("view_enum"), c.at("id"));
    }
  }
  EXPECT_GT(compared, 100);
}

// The same for the expert view, with its own axes.
TEST(Axis, ExpertViewEqualsTheRecordedEnumeration) {
  const std::map<std::string, Axis> names = {
      {"expt_tp", Axis::kExpertTp}, {"ep", Axis::kEp}, {"expt_dp", Axis::kExpertDp}, {"pp", Axis::kPp}};
  int compared = 0;
  for (const json& c : Golden().at("grid_cases")) {
    if (!c.contains("view") || c["shape"][1] != 1 || c["view"]["shape"][2] != 1) continue;  // no gtp axis
    const json &s = c["shape"], &v = c["view"]["shape"];
    const Grid grid = {c["rank_offset"], s[0], s[2], s[3], s[4], v[0], v[1], v[3]};
    for (const json& query : c.at("view_enum")) {
      std::vector<Axis> axes;
      for (const std::string dim : query.at("dims")) {
        if (names.contains(dim)) axes.push_back(names.at(dim));
      }
      EXPECT_EQ(GroupsOver(grid, View::kExpert, axes), query.at("groups").get<Ranks>())
          << c.at("id") << query.at("dims");
      ++compared;
    }
  }
  EXPECT_GT(compared, 5);
}

TEST(Axis, CoordinatesAndIndicesAgreeWithGroups) {
  const Grid grid = {.first_rank = 5, .tp = 2, .cp = 3, .dp = 4, .pp = 2, .expert_tp = 2, .ep = 6, .expert_dp = 2};
  for (View view : {View::kDense, View::kExpert}) {
    const auto& all = AxesOf(view);
    for (int mask = 1; mask < 16; ++mask) {
      std::vector<Axis> axes;
      for (int i = 0; i < 4; ++i) {
        if (mask >> i & 1) axes.push_back(all[i]);
      }
      for (const std::vector<int>& group : GroupsOver(grid, view, axes)) {
        for (size_t i = 0; i < group.size(); ++i) {
          EXPECT_EQ(IndexInGroup(grid, view, axes, group[i]), static_cast<int>(i));
          EXPECT_EQ(GroupOf(grid, view, axes, group[i]), group);
          for (Axis other : all) {  // members differ along the group's axes only
            const bool within = std::find(axes.begin(), axes.end(), other) != axes.end();
            if (!within) {
              EXPECT_EQ(CoordinateOf(grid, group[i], other), CoordinateOf(grid, group[0], other));
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace planwright
