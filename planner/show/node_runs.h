// Runs of nodes that look alike: a world of a hundred nodes is drawn as the few kinds of nodes that it has.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Consecutive nodes whose ranks, one by one, hold the same modules at the same tp, cp and pp.
struct NodeRun {
  int first_node = 0, nodes = 1;
};

// One run for each node if the world has at most `single` nodes.
std::vector<NodeRun> NodeRuns(const Plan& plan, int single);

// What stands in the box of one local rank over all nodes of a run, line by line: its rank, then for each module its
// name and the coordinates that tell ranks apart. "dp0+4n": 0 on the run's first node, 4 more on each next one;
// "ep0,8": these in turn.
std::vector<std::string> BoxOf(const Plan& plan, const NodeRun& run, int local_rank);

// "tp1 dp0 ep3": the coordinates of one rank that tell it from others of its module.
std::string PlaceText(const Grid& grid, int rank);

}  // namespace planwright
