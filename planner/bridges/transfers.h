// Which rank sends which samples of a microbatch to which rank. Unlike the reference (facts 2.2, 2.6) we deal samples,
// not rows of a tensor, so counts of lanes need not divide each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Between disjoint grids: from the source leader to the destination leader of every pair of lanes that share samples of
// a block of `samples`. Ordered by source lane, then destination lane.
std::vector<Transfer> LeaderTransfers(const Grid& source, const Grid& destination, int64_t samples);

// The way back of `transfers`.
std::vector<Transfer> Mirrored(const std::vector<Transfer>& transfers);

// Between two layouts of the same ranks: every destination rank gets the rows of each source lane that shares samples
// with its own, from itself if it is in that lane, else from the lane's rank at tp coordinate (its own tp coordinate)
// mod (source tp). Ordered by destination rank, then source lane. The gradients are the same with the roles swapped.
std::vector<Transfer> ColocatedTransfers(const Grid& source, const Grid& destination, int64_t samples);

// equal | fan_out | fan_in | uneven, by counts of lanes; colocated for equal ranks.
std::string BridgeKind(const Grid& source, const Grid& destination);
bool SameRanks(const Grid& a, const Grid& b);

}  // namespace planwright
