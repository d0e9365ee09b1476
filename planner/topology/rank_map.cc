#include "planner/topology/rank_map.h"

#include <algorithm>

namespace planwright {

RankPlace PlaceOfRank(const Cluster& cluster, int rank) {
  return {rank, rank / cluster.gpus_per_node, rank % cluster.gpus_per_node};
}

int WorldSizeOf(const std::vector<Grid>& grids) {
  int end = 0;
  for (const Grid& grid : grids) end = std::max(end, grid.first_rank + grid.ranks());
  return end;
}

Cluster ClusterOf(const ClusterRecipe& recipe) {
  return {static_cast<int>(*recipe.nodes), static_cast<int>(*recipe.gpus_per_node), *recipe.gpu};
}

}  // namespace planwright
