#include "planner/views/show/node_runs.h"

#include <algorithm>
#include <set>

namespace planwright {
namespace {

// Axes along which ranks of a module differ, dense ones first. expert_dp follows from the others and is left out.
std::vector<Axis> ShownAxes(const Grid& grid) {
  std::vector<Axis> axes;
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp, Axis::kExpertTp, Axis::kEp}) {
    if (grid.size(axis) > 1) axes.push_back(axis);
  }
  return axes;
}

// Equal for nodes of one run. Data-parallel coordinates are not part of it: they are what makes nodes of a run differ.
std::vector<int> NodeKey(const Plan& plan, int node) {
  const int first = node * RanksPerNode(plan), end = std::min(first + RanksPerNode(plan), plan.world_size);
  std::vector<int> key;
  for (int rank = first; rank < end; ++rank) {
    for (size_t m = 0; m < plan.modules.size(); ++m) {
      const Grid& grid = plan.modules[m].grid;
      if (!grid.contains(rank)) continue;
      key.push_back(static_cast<int>(m));
      for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kPp}) key.push_back(CoordinateOf(grid, rank, axis));
    }
    key.push_back(-1);  // ends a rank: modules of neighbors do not mix
  }
  return key;
}

// A coordinate on the nodes of a run: "3" if it is the same on all, "0+4n" if it grows evenly. Otherwise up to three
// values in turn, and of more the least and the largest.
std::string CoordinateText(const std::vector<int>& values) {
  const int step = values.size() > 1 ? values[1] - values[0] : 0;
  bool even = true;
  for (size_t i = 1; i < values.size(); ++i) even &= values[i] - values[i - 1] == step;
  if (even) return std::to_string(values[0]) + (step == 0 ? "" : "+" + (step == 1 ? "" : std::to_string(step)) + "n");
  const std::set<int> distinct(values.begin(), values.end());
  if (distinct.size() > 3) return std::to_string(*distinct.begin()) + ".." + std::to_string(*distinct.rbegin());
  std::string text;
  for (int value : distinct) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

}  // namespace

int RanksPerNode(const Plan& plan) { return std::max(1, plan.cluster.gpus_per_node); }

namespace {

int NodesOfRanks(const Plan& plan) { return (plan.world_size + RanksPerNode(plan) - 1) / RanksPerNode(plan); }

}  // namespace

int NodesOf(const Plan& plan) { return std::max(plan.cluster.nodes, NodesOfRanks(plan)); }

std::vector<NodeRun> NodeRuns(const Plan& plan, int single) {
  const int nodes = NodesOfRanks(plan);
  std::vector<NodeRun> runs;
  std::vector<int> key;
  for (int node = 0; node < nodes; ++node) {
    std::vector<int> next = NodeKey(plan, node);
    if (nodes > single && !runs.empty() && next == key) {
      ++runs.back().nodes;
    } else {
      runs.push_back({node, 1});
    }
    key = std::move(next);
  }
  return runs;
}

std::string RunTitle(const NodeRun& run) {
  if (run.nodes == 1) return "node " + std::to_string(run.first_node);
  return "nodes " + std::to_string(run.first_node) + "-" + std::to_string(run.first_node + run.nodes - 1);
}

std::vector<std::string> RankBoxLines(const Plan& plan, const NodeRun& run, int local_rank) {
  std::vector<int> ranks;
  for (int node = run.first_node; node < run.first_node + run.nodes; ++node)
    ranks.push_back(node * RanksPerNode(plan) + local_rank);
  std::vector<std::string> lines = {"rank " + CoordinateText(ranks)};
  for (const Module& module : plan.modules) {
    // All nodes of a run have the same modules at this local rank, so the first rank speaks for the others.
    if (!module.grid.contains(ranks[0])) continue;
    lines.push_back(module.name);
    std::string coordinates;
    for (Axis axis : ShownAxes(module.grid)) {
      std::vector<int> values;
      for (int rank : ranks) values.push_back(CoordinateOf(module.grid, rank, axis));
      coordinates += (coordinates.empty() ? "" : " ") + std::string(AxisName(axis)) + CoordinateText(values);
    }
    lines.push_back(coordinates);
  }
  if (lines.size() == 1) lines.push_back("idle");
  return lines;
}

std::string GridSizesText(const Grid& grid, View view) {
  std::string text;
  for (Axis axis : AxesOf(view))
    text += (text.empty() ? "" : " ") + std::string(AxisName(axis)) + std::to_string(grid.size(axis));
  return text;
}

}  // namespace planwright
