// What the ranks of one life run, before it is said where.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/run/launch/child_process.h"

namespace planwright {

// Names and values of environment variables.
using Variables = std::map<std::string, std::string, std::less<>>;

struct RankProgram {
  std::string run_dir;
  std::vector<std::string> arguments;  // the executor's path first; the same for all ranks
  Variables variables;                 // of rendezvous (rank_environment.h); the same for all ranks
  bool holds_stop_signal = false;      // Command::holds_stop_signal
  bool outlives_sigterm = false;       // Command::outlives_sigterm
  bool gpus = false;                   // rank R of a node uses its GPU R
  bool forks = false;                  // it forks the ranks of a node, so that it is loaded once (planner/wire/fork)
  int world_size = 1;
  int ranks_per_node = 1;  // rank R runs on node R / ranks_per_node; the last node may have fewer
};

// The ranks of a node, ascending. Empty: the node is not needed.
std::vector<int> RanksOfNode(const RankProgram& program, int node);
int NodesOf(const RankProgram& program);

// The commands of some ranks that run on one machine. Their environment is this program's own, with the variables above
// and the ranks' numbers (RankEnvironment), and each has the cores of BindRanks (core_binding.h).
std::vector<Command> CommandsOf(const RankProgram& program, const std::vector<int>& ranks);

}  // namespace planwright
