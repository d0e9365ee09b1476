#include "planner/predict/estimate/communication_uses.h"

#include <algorithm>

namespace planwright {

Members MembersAmong(const std::vector<int>& ranks, int gpus_per_node) {
  Members members{static_cast<int>(ranks.size()), 0, 0};
  int node = -1, here = 0;
  for (int member : ranks) {
    if (member / gpus_per_node != node) node = member / gpus_per_node, here = 0, ++members.nodes;
    members.on_fullest_node = std::max(members.on_fullest_node, ++here);
  }
  return members;
}

bool CommunicationUses::SameNode(int a, int b) const {
  const int gpus = std::max(1, plan_.cluster.gpus_per_node);
  return a / gpus == b / gpus;
}

Members CommunicationUses::FindMembers(const Group& group, int rank) const {
  const int gpus = std::max(1, plan_.cluster.gpus_per_node);
  const Module* module = plan_.FindModule(group.module);
  if (!module && group.ranks.empty()) {  // the world, from rank 0 on
    return {plan_.world_size, std::min(gpus, plan_.world_size), (plan_.world_size + gpus - 1) / gpus};
  }
  return MembersAmong(module ? GroupOf(module->grid, group.view, group.axes, rank) : group.ranks, gpus);
}

const Members& CommunicationUses::MembersOf(int group, int rank) {
  const auto [at, is_new] = members_.try_emplace({group, rank});
  if (is_new) at->second = FindMembers(plan_.groups[static_cast<size_t>(group)], rank);
  return at->second;
}

const std::map<int, CommunicationUses::Load>& CommunicationUses::LoadsOf(int bridge, bool backward) {
  const auto [at, is_new] = loads_.try_emplace({bridge, backward});
  if (!is_new) return at->second;
  const Bridge& over = plan_.bridges[static_cast<size_t>(bridge)];
  for (const Transfer& transfer : backward ? over.backward : over.forward) {
    if (transfer.from_rank == transfer.to_rank) continue;  // what a rank hands to itself crosses nothing
    at->second[transfer.from_rank].sent += transfer.end_sample - transfer.first_sample;
    at->second[transfer.to_rank].received += transfer.end_sample - transfer.first_sample;
  }
  return at->second;
}

const Crossing& CommunicationUses::CrossingOf(int bridge, bool backward, int rank) {
  const auto [at, is_new] = crossings_.try_emplace({bridge, backward, rank});
  if (!is_new) return at->second;
  const Bridge& over = plan_.bridges[static_cast<size_t>(bridge)];
  const std::map<int, Load>& loads = LoadsOf(bridge, backward);
  for (const Transfer& transfer : backward ? over.backward : over.forward) {
    if ((transfer.from_rank != rank && transfer.to_rank != rank) || transfer.from_rank == transfer.to_rank) continue;
    (transfer.from_rank == rank ? at->second.sent : at->second.received) += transfer.end_sample - transfer.first_sample;
    at->second.leaves_node |= !SameNode(transfer.from_rank, transfer.to_rank);
    for (int end : {transfer.from_rank, transfer.to_rank}) {
      const Load& load = loads.at(end);
      at->second.busiest = std::max({at->second.busiest, load.sent, load.received});
    }
  }
  return at->second;
}

}  // namespace planwright
