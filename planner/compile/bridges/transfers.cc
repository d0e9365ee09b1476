#include "planner/compile/bridges/transfers.h"

#include <algorithm>

#include "planner/base/text/limits.h"

namespace planwright {
namespace {

// tp varies fastest, then cp, dp, pp (docs/layouts/grids.md#enumeration).
int RankAt(const Grid& grid, int tp, int cp, int dp, int pp) {
  return grid.first_rank + tp + grid.tp * (cp + grid.cp * (dp + grid.dp * pp));
}

// The last rank of a lane, on the last stage: there the encoder's output is. And the first rank on the first stage,
// where the language model's embedding is.
int SourceLeader(const Grid& grid, int lane) { return RankAt(grid, grid.tp - 1, grid.cp - 1, lane, grid.pp - 1); }
int DestinationLeader(const Grid& grid, int lane) { return RankAt(grid, 0, 0, lane, 0); }

LaneSamples Overlap(const LaneSamples& a, const LaneSamples& b) {
  return {std::max(a.first, b.first), std::min(a.end, b.end)};
}

// More are refused, however many they are.
bool TooMany(const std::vector<Transfer>& transfers) { return static_cast<int64_t>(transfers.size()) > kMostTransfers; }

// The lane that reads `sample`: the inverse of SamplesOfLane, in which the first samples % lanes lanes have one sample
// more. Searching all lanes for it would make colocated transfers quadratic in ranks.
int LaneOfSample(int64_t samples, int lanes, int64_t sample) {
  const int64_t each = samples / lanes, longer = samples % lanes;
  if (sample < longer * (each + 1)) return static_cast<int>(sample / (each + 1));
  return each == 0 ? lanes : static_cast<int>(longer + (sample - longer * (each + 1)) / each);
}

}  // namespace

// Lanes are in the order of their samples, so one walk over both lists of lanes finds all pairs.
std::vector<Transfer> LeaderTransfers(const Grid& source, const Grid& destination, int64_t samples) {
  std::vector<Transfer> transfers;
  for (int s = 0, d = 0; s < source.dp && d < destination.dp && !TooMany(transfers);) {
    const LaneSamples from = SamplesOfLane(samples, source.dp, s), to = SamplesOfLane(samples, destination.dp, d);
    const LaneSamples shared = Overlap(from, to);
    if (shared.first < shared.end)
      transfers.push_back({SourceLeader(source, s), DestinationLeader(destination, d), shared.first, shared.end});
    from.end <= to.end ? ++s : ++d;
  }
  return transfers;
}

std::vector<Transfer> Mirrored(const std::vector<Transfer>& transfers) {
  std::vector<Transfer> mirrored = transfers;
  for (Transfer& transfer : mirrored) std::swap(transfer.from_rank, transfer.to_rank);
  return mirrored;
}

std::vector<Transfer> ColocatedTransfers(const Grid& source, const Grid& destination, int64_t samples) {
  std::vector<Transfer> transfers;
  // Colocated modules have pp 1 and cp 1, so tp and dp name a rank.
  const int end = destination.first_rank + destination.ranks();
  for (int rank = destination.first_rank; rank < end && !TooMany(transfers); ++rank) {
    const int own_lane = CoordinateOf(destination, rank, Axis::kDp),
              source_lane = CoordinateOf(source, rank, Axis::kDp);
    const int tp = CoordinateOf(destination, rank, Axis::kTp) % source.tp;
    const LaneSamples own = SamplesOfLane(samples, destination.dp, own_lane);
    for (int lane = LaneOfSample(samples, source.dp, own.first); lane < source.dp; ++lane) {
      const LaneSamples shared = Overlap(SamplesOfLane(samples, source.dp, lane), own);
      if (shared.first >= shared.end) break;  // lanes without samples are the last ones
      const int from = lane == source_lane ? rank : RankAt(source, tp, 0, lane, 0);
      transfers.push_back({from, rank, shared.first, shared.end});
    }
  }
  return transfers;
}

std::string BridgeKind(const Grid& source, const Grid& destination) {
  if (source.first_rank == destination.first_rank && source.ranks() == destination.ranks()) return "colocated";
  if (source.dp == destination.dp) return "equal";
  if (destination.dp % source.dp == 0) return "fan_out";
  return source.dp % destination.dp == 0 ? "fan_in" : "uneven";
}

}  // namespace planwright
