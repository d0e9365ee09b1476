#include "planner/estimate/dispatch_time.h"

#include "planner/estimate/device.h"

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

DispatchTimes TimeDispatch(const Module& module, const Cluster& cluster, int64_t element_bytes) {
  const double ep = module.grid.ep, k = static_cast<double>(module.top_k());
  // Rows that a rank sends for each of its tokens, there and back. A row of each choice goes to another rank with
  // probability (ep - 1) / ep; a token that is gathered goes to ep - 1 ranks, and so many terms of its sum come back.
  const double sent = 2 * k * (ep - 1) / ep, gathered = 2 * (ep - 1);
  const Device& device = DeviceOf(cluster.gpu);
  if (device.memory_speed == 0) return {sent, gathered};
  const double link = SpansNodes(module.grid, cluster.gpus_per_node) ? device.network : device.node_link;
  const double row = static_cast<double>(module.size("hidden") * element_bytes);
  // Rows that kernels read or write in memory beside the messages. Both read and write k rows of the experts there and
  // back. Before and behind its k rows the first has one token, the second has the ep tokens of all ranks.
  const double tokens = 2 * k + 2, all_tokens = 2 * k + 2 * ep;
  return {row * (sent / link + tokens / device.memory_speed),
          row * (gathered / link + all_tokens / device.memory_speed)};
}

std::string DispatchOf(const Module& module, const Cluster& cluster, int64_t element_bytes, const std::string& wanted) {
  if (module.expert_layers() == 0 || module.grid.ep == 1) return "";
  if (wanted != "auto") return wanted;
  const DispatchTimes times = TimeDispatch(module, cluster, element_bytes);
  return times.all_gather < times.all_to_all ? "all_gather" : "all_to_all";
}

}  // namespace planwright
