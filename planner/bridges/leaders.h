// The ranks of a grid that speak for their data lane over a bridge. Formulas: facts 2.1.
#pragma once

#include <vector>

#include "planner/plan/axis.h"

namespace planwright {

int RankAt(const Grid& grid, int tp, int cp, int dp, int pp);

// A source leader is the last tp (and cp) rank of its lane on the last stage; a destination leader is the first on the
// first.
int SourceLeader(const Grid& grid, int lane);
int DestinationLeader(const Grid& grid, int lane);

// By lane.
std::vector<int> SourceLeaders(const Grid& grid);
std::vector<int> DestinationLeaders(const Grid& grid);

// By lane: the ranks, ascending, that get what the leader received (on the first stage), or the gradient that a source
// leader received (on the last).
std::vector<std::vector<int>> SourceBroadcastGroups(const Grid& grid);
std::vector<std::vector<int>> DestinationBroadcastGroups(const Grid& grid);

}  // namespace planwright
