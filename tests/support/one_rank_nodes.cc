#include "tests/support/one_rank_nodes.h"

namespace planwright::testing {

std::vector<std::string> OneRankNodes(int nodes) {
  return {"cluster.nodes=" + std::to_string(nodes), "cluster.gpus_per_node=1", "launch.interface=lo", "--agents"};
}

std::string WithAgents(const std::string& launch, const std::string& plan, const std::string& run_dir, int nodes) {
  // The file of an earlier life names a port at which nobody listens.
  const std::string head = Quoted(run_dir + "/job/head.json");
  // A launch that is refused opens none, and then no agent shall wait for it.
  return "{ rm -f " + head + "; " + launch + " & launch=$!; until [ -e " + head +
         " ] || ! kill -0 $launch 2>/dev/null; do sleep 0.05; done; node=0; while [ -e " + head + " ] && [ $node -lt " +
         std::to_string(nodes) +
         " ]; do CUDA_VISIBLE_DEVICES=0 NCCL_HOSTID=node$node NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 " + plan +
         " agent " + head + " --node $node >/dev/null & node=$((node + 1)); done; wait $launch; }";
}

std::string Quoted(const std::string& word) { return "'" + word + "'"; }

}  // namespace planwright::testing
