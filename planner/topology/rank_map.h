// Ranks on nodes: rank r is GPU r % gpus_per_node of node r / gpus_per_node.
#pragma once

#include <vector>

#include "planner/plan/axis.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

struct RankPlace {
  int rank = 0, node = 0, local_rank = 0;
  bool operator==(const RankPlace&) const = default;
};

RankPlace PlaceOfRank(const Cluster& cluster, int rank);

// Ranks of the grids that tile [0, world).
int WorldSizeOf(const std::vector<Grid>& grids);

Cluster ClusterOf(const ClusterRecipe& recipe);

}  // namespace planwright
