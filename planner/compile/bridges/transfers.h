// Which rank sends which samples of a microbatch to which rank (docs/layouts/bridges.md#samples). Samples are dealt to
// lanes, not rows of a tensor, so lane counts need not divide each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Each of these ends once it has one transfer more than a plan may have (kMostTransfers).

// Between disjoint grids: leaders speak for their lanes (docs/layouts/bridges.md#leaders). For each pair of lanes that
// share samples of a block of `samples`, the source lane's leader sends them to the destination lane's leader. Ordered
// by source lane, then destination lane.
std::vector<Transfer> LeaderTransfers(const Grid& source, const Grid& destination, int64_t samples);

// The way back of `transfers`.
std::vector<Transfer> Mirrored(const std::vector<Transfer>& transfers);

// Between two layouts of the same ranks (docs/layouts/bridges.md#colocated): every destination rank gets all samples of
// its own lane. It gets them from itself where it is in the source lane that has them; else from the rank of that lane
// whose tp coordinate is its own, modulo the source's tp. Ordered by destination rank, then source lane. Gradients take
// the same function with source and destination exchanged.
std::vector<Transfer> ColocatedTransfers(const Grid& source, const Grid& destination, int64_t samples);

// "colocated" for equal ranks; else by lane counts: "equal", "fan_out", "fan_in", or "uneven" where neither count
// divides the other.
std::string BridgeKind(const Grid& source, const Grid& destination);

}  // namespace planwright
