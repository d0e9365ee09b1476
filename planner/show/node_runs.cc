#include "planner/show/node_runs.h"

#include <algorithm>
#include <set>

namespace planwright {
namespace {

int PerNode(const Plan& plan) { return std::max(1, plan.cluster.gpus_per_node); }

// Axes along which ranks of a module differ, dense ones first; those of the expert view only where it is another one.
std::vector<Axis> ShownAxes(const Grid& grid) {
  std::vector<Axis> axes;
  for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp, Axis::kExpertTp, Axis::kEp}) {
    if (grid.size(axis) > 1) axes.push_back(axis);
  }
  return axes;
}

std::vector<int> KeyOf(const Plan& plan, int node) {
  std::vector<int> key;
  for (int rank = node * PerNode(plan); rank < std::min((node + 1) * PerNode(plan), plan.world_size); ++rank) {
    for (size_t m = 0; m < plan.modules.size(); ++m) {
      const Grid& grid = plan.modules[m].grid;
      if (!grid.contains(rank)) continue;
      key.push_back(static_cast<int>(m));
      for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kPp}) key.push_back(CoordinateOf(grid, rank, axis));
    }
    key.push_back(-1);
  }
  return key;
}

// "3"; "0+4n" over a run; else the values in turn.
std::string AlongText(const std::vector<int>& values) {
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

std::vector<NodeRun> NodeRuns(const Plan& plan, int single) {
  const int nodes = (plan.world_size + PerNode(plan) - 1) / PerNode(plan);
  std::vector<NodeRun> runs;
  std::vector<int> key;
  for (int node = 0; node < nodes; ++node) {
    std::vector<int> next = KeyOf(plan, node);
    if (nodes > single && !runs.empty() && next == key) {
      ++runs.back().nodes;
    } else {
      runs.push_back({node, 1});
    }
    key = std::move(next);
  }
  return runs;
}

std::vector<std::string> BoxOf(const Plan& plan, const NodeRun& run, int local_rank) {
  std::vector<int> ranks;
  for (int node = run.first_node; node < run.first_node + run.nodes; ++node)
    ranks.push_back(node * PerNode(plan) + local_rank);
  std::vector<std::string> lines = {"rank " + AlongText(ranks)};
  for (const Module& module : plan.modules) {
    if (!module.grid.contains(ranks[0])) continue;
    lines.push_back(module.name);
    std::string place;
    for (Axis axis : ShownAxes(module.grid)) {
      std::vector<int> along;
      for (int rank : ranks) along.push_back(CoordinateOf(module.grid, rank, axis));
      place += (place.empty() ? "" : " ") + std::string(AxisName(axis)) + AlongText(along);
    }
    lines.push_back(place);
  }
  if (lines.size() == 1) lines.push_back("idle");
  return lines;
}

std::string PlaceText(const Grid& grid, int rank) {
  std::string text;
  for (Axis axis : ShownAxes(grid))
    text += (text.empty() ? "" : " ") + std::string(AxisName(axis)) + std::to_string(CoordinateOf(grid, rank, axis));
  return text;
}

}  // namespace planwright
