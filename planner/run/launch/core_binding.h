// Which cores each rank of a machine runs on. A rank that stays near its GPU has its memory there too, as Linux takes a
// page from the node of the core that touches it first. Ranks on CPUs are not bound (docs/agents.md#cores).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace planwright {

// The cores on which this process may run, ascending.
std::vector<int> OwnCores();

// The NUMA node of each GPU that ranks may use, as `root`/proc and `root`/sys say; -1: unknown. `visible`: the variable
// CUDA_VISIBLE_DEVICES, numbers in the order of the PCI bus or UUIDs; without it these are all GPUs of this machine.
std::vector<int> NodesOfGpus(const std::optional<std::string>& visible, const std::string& root = "");
// The cores of a NUMA node; empty if there is no such node.
std::vector<int> CoresOfNode(int node, const std::string& root = "");

// Divides `cores` among `ranks` ranks: rank R gets cores of the NUMA node of GPU R, as many as each other rank of that
// node; where GPUs or nodes are unknown, an equal part in order. Empty: there are fewer cores than ranks, and nobody is
// bound.
std::vector<std::vector<int>> DivideCores(const std::vector<int>& cores, int ranks,
                                          const std::vector<std::vector<int>>& cores_of_gpus);

// The cores of each rank of this machine. `gpus`: rank R uses the R-th visible GPU. Empty: nobody is bound, since the
// ranks compute on CPUs or there are fewer cores than ranks.
std::vector<std::vector<int>> BindRanks(int ranks, bool gpus);

}  // namespace planwright
