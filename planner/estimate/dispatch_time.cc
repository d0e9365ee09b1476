#include "planner/estimate/dispatch_time.h"

#include "planner/rates/device.h"

namespace planwright {
namespace {

// Whether some ep group has ranks of two nodes. Its first and last rank are furthest apart.
bool SpansNodes(const Grid& grid, int gpus_per_node) {
  const int last = (grid.ep - 1) * grid.expert_tp;
  for (int rank = grid.first_rank; rank < grid.first_rank + grid.ranks(); ++rank) {
    if (CoordinateOf(grid, rank, Axis::kEp) == 0 && rank / gpus_per_node != (rank + last) / gpus_per_node) return true;
  }
  return false;
}

}  // namespace

DispatchTime TimeDispatch(const Module& module, const Cluster& cluster, DType dtype, const std::string& dispatch) {
  const double ep = module.grid.ep, k = static_cast<double>(module.top_k());
  // A row of each choice goes to another rank with probability (ep - 1) / ep, and its result comes back. A token that
  // is gathered goes to ep - 1 ranks. As many terms of its sum come back, and they are wide: `term` rows each.
  const bool gathers = dispatch == "all_gather";
  const double term = dtype == DType::kBf16 ? 2 : 1;
  DispatchTime time = {.rows = gathers ? (1 + term) * (ep - 1) : 2 * k * (ep - 1) / ep};
  const Device device = DeviceOf(cluster);
  const double link = SpansNodes(module.grid, cluster.gpus_per_node) ? device.network : device.node_link;
  if (device.memory_speed == 0 || link == 0) return time;
  const double row = static_cast<double>(module.size("hidden") * DTypeBytes(dtype));
  // Rows that kernels read or write beside the messages: on both ways the k rows of the experts, and the tokens that
  // they are made of or added up to. These are one, or those of all ranks.
  const double in_memory = 2 * k + (gathers ? (1 + term) * ep : 2);
  time.seconds = row * (time.rows / link + in_memory / device.memory_speed);
  return time;
}

std::string DispatchOf(const Module& module, const std::string& wanted, const Cluster& cluster, DType dtype) {
  if (module.expert_layers() == 0 || module.grid.ep == 1) return "all_to_all";
  if (wanted != "auto") return wanted;
  const double gathered = TimeDispatch(module, cluster, dtype, "all_gather").seconds;
  return gathered < TimeDispatch(module, cluster, dtype, "all_to_all").seconds ? "all_gather" : "all_to_all";
}

}  // namespace planwright
