// Grids of the reference's bridge cases.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "planner/plan/axis.h"

namespace planwright {

// Our grid of the same sizes, and for each rank of the reference's grid the rank of ours with the same coordinates. The
// reference may declare axes in another order than ours, which is tp, cp, dp, pp. Its gtp axis, which we do not have,
// is counted as further lanes, the fastest ones.
struct GoldenRanks {
  Grid grid;
  std::map<int, int> ours;  // by rank of the reference
};

inline GoldenRanks RanksOf(const nlohmann::json& c) {
  std::map<std::string, int> size = {{"tp", 1}, {"cp", 1}, {"gtp_remat", 1}, {"dp", 1}, {"pp", 1}};
  const size_t dims = c.at("shape").size();
  for (size_t i = 0; i < dims; ++i) size.at(c.at("dim_names")[i]) = c["shape"][i];
  GoldenRanks result{{.first_rank = c.at("rank_offset"),
                      .tp = size["tp"],
                      .cp = size["cp"],
                      .dp = size["dp"] * size["gtp_remat"],
                      .pp = size["pp"]},
                     {}};
  Grid& grid = result.grid;
  grid.expert_dp = grid.ranks() / grid.pp;
  for (int index = 0; index < grid.ranks(); ++index) {
    std::map<std::string, int> at;
    int rest = index;
    for (size_t i = 0; i < dims; ++i) {
      at[c["dim_names"][i]] = rest % c["shape"][i].get<int>();
      rest /= c["shape"][i].get<int>();
    }
    const int lane = at["dp"] * size["gtp_remat"] + at["gtp_remat"];
    result.ours[grid.first_rank + index] =
        grid.first_rank + at["tp"] + grid.tp * (at["cp"] + grid.cp * (lane + grid.dp * at["pp"]));
  }
  return result;
}

// Nothing when the reference numbers the ranks in another order.
inline std::optional<Grid> GoldenGrid(const nlohmann::json& c) {
  const GoldenRanks ranks = RanksOf(c);
  for (const auto& [theirs, ours] : ranks.ours) {
    if (theirs != ours) return std::nullopt;
  }
  return ranks.grid;
}

}  // namespace planwright
