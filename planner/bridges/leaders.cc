#include "planner/bridges/leaders.h"

namespace planwright {
namespace {

std::vector<int> Leaders(const Grid& grid, int (*leader)(const Grid&, int)) {
  std::vector<int> leaders;
  for (int lane = 0; lane < grid.dp; ++lane) leaders.push_back(leader(grid, lane));
  return leaders;
}

std::vector<std::vector<int>> BroadcastGroups(const Grid& grid, int pp) {
  std::vector<std::vector<int>> groups;
  for (int lane = 0; lane < grid.dp; ++lane) {
    groups.push_back(GroupOf(grid, View::kDense, {Axis::kTp, Axis::kCp}, RankAt(grid, 0, 0, lane, pp)));
  }
  return groups;
}

}  // namespace

int RankAt(const Grid& grid, int tp, int cp, int dp, int pp) {
  return grid.first_rank + tp + grid.tp * (cp + grid.cp * (dp + grid.dp * pp));
}

int SourceLeader(const Grid& grid, int lane) { return RankAt(grid, grid.tp - 1, grid.cp - 1, lane, grid.pp - 1); }
int DestinationLeader(const Grid& grid, int lane) { return RankAt(grid, 0, 0, lane, 0); }

std::vector<int> SourceLeaders(const Grid& grid) { return Leaders(grid, SourceLeader); }
std::vector<int> DestinationLeaders(const Grid& grid) { return Leaders(grid, DestinationLeader); }

std::vector<std::vector<int>> SourceBroadcastGroups(const Grid& grid) { return BroadcastGroups(grid, grid.pp - 1); }
std::vector<std::vector<int>> DestinationBroadcastGroups(const Grid& grid) { return BroadcastGroups(grid, 0); }

}  // namespace planwright
