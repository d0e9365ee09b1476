// Grids of the reference's bridge cases.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "planner/plan/axis.h"

namespace planwright {

// Nothing when the dims of more than one rank are not declared in our order, tp, cp, dp, pp. A gtp axis right before dp is more data lanes.
inline std::optional<Grid> GoldenGrid(const nlohmann::json& c) {
  Grid grid = {.first_rank = c.at("rank_offset")};
  const std::map<std::string, std::pair<int, int*>> dims = {
      {"tp", {0, &grid.tp}}, {"cp", {1, &grid.cp}}, {"gtp_remat", {2, &grid.dp}}, {"dp", {3, &grid.dp}}, {"pp", {4, &grid.pp}}};
  int last = -1;
  for (size_t i = 0; i < c.at("shape").size(); ++i) {
    const int size = c["shape"][i];
    if (size == 1) continue;
    const auto [order, target] = dims.at(c.at("dim_names")[i]);
    if (order < last) return std::nullopt;
    last = order;
    *target *= size;
  }
  grid.expert_dp = grid.ranks() / grid.pp;
  return grid;
}

}  // namespace planwright
