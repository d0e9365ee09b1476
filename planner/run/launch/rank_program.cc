#include "planner/run/launch/rank_program.h"

#include <algorithm>

#include "planner/run/launch/core_binding.h"
#include "planner/run/launch/rank_environment.h"

namespace planwright {

std::vector<int> RanksOfNode(const RankProgram& program, int node) {
  std::vector<int> ranks;
  const int end = std::min(program.world_size, (node + 1) * program.ranks_per_node);
  for (int rank = node * program.ranks_per_node; rank < end; ++rank) ranks.push_back(rank);
  return ranks;
}

int NodesOf(const RankProgram& program) {
  return (program.world_size + program.ranks_per_node - 1) / program.ranks_per_node;
}

std::vector<Command> CommandsOf(const RankProgram& program, const std::vector<int>& ranks) {
  const std::vector<std::string> inherited = OwnEnvironment();
  const std::vector<std::vector<int>> cores = BindRanks(static_cast<int>(ranks.size()), program.gpus);
  std::vector<Command> commands;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankNumbers numbers = {.rank = ranks[i],
                                 .world_size = program.world_size,
                                 .local_rank = static_cast<int>(i),
                                 .local_size = static_cast<int>(ranks.size()),
                                 .own_cores = !cores.empty()};
    commands.push_back({.arguments = program.arguments,
                        .environment = RankEnvironment(program.variables, numbers, inherited),
                        .holds_stop_signal = program.holds_stop_signal,
                        .outlives_sigterm = program.outlives_sigterm,
                        .cores = cores.empty() ? std::vector<int>() : cores[i]});
  }
  return commands;
}

}  // namespace planwright
