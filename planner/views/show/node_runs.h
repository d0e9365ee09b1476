// Runs of similar nodes, and the coordinates of ranks as text. A world of a hundred nodes is drawn as the few kinds of
// nodes that it has.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Consecutive nodes that differ in their dp and expert coordinates only: rank by rank they hold the same modules at the
// same tp, cp and pp.
struct NodeRun {
  int first_node = 0, nodes = 1;
};

// Ranks of a node; 1 or more, also for a plan without a cluster.
int RanksPerNode(const Plan& plan);

// The nodes of the cluster, and of ranks on CPUs as many as they take: `cluster.nodes` is no end for them.
int NodesOf(const Plan& plan);

// All nodes in order. A world of at most `single` nodes is not summarized: each node is a run of its own.
std::vector<NodeRun> NodeRuns(const Plan& plan, int single);

// "node 3", "nodes 1-32"
std::string RunTitle(const NodeRun& run);

// The lines of the box that stands for one local rank on all nodes of a run: its rank, then for each module its name
// and its coordinates. "dp0+4n": 0 on the run's first node and 4 more on each node after it. "ep0,8": these values in
// turn.
std::vector<std::string> RankBoxLines(const Plan& plan, const NodeRun& run, int local_rank);

// The sizes of a view's axes: "tp2 cp1 dp2 pp1" (docs/layouts/grids.md#two-views).
std::string GridSizesText(const Grid& grid, View view);

}  // namespace planwright
