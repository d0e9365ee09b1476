// A run on several nodes, each with one rank and an agent of its own, all of them this machine. NCCL takes the ranks
// for those of other hosts, so that they may share a GPU, and goes through sockets.
#pragma once

#include <string>
#include <vector>

namespace planwright::testing {

// What `plan launch` of such a run takes beside recipe and options: so many nodes of one rank, by agents.
std::vector<std::string> OneRankNodes(int nodes);

// A command of the shell that starts `launch`, the head of the run in `run_dir`, with an agent for each of `nodes`
// nodes, and ends as the head does. `launch` is a command of the shell, `plan` the program, both quoted.
std::string WithAgents(const std::string& launch, const std::string& plan, const std::string& run_dir, int nodes);

// As one word of the shell. `word` has no quotes.
std::string Quoted(const std::string& word);

}  // namespace planwright::testing
