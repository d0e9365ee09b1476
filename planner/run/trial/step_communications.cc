#include "planner/run/trial/step_communications.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "planner/predict/estimate/communications_of_step.h"

namespace planwright {
namespace {

// An exchange has no group of its own: each of its parts names a bridge or the group of stages.
void AddNames(const Instruction& communication, std::set<std::string>& names) {
  if (!communication.group.empty()) names.insert(communication.group);
  for (const ExchangePart& part : communication.parts) names.insert(part.bridge.empty() ? part.group : part.bridge);
}

}  // namespace

std::vector<StepCommunication> StepCommunications(const Plan& plan) {
  std::map<std::tuple<int, int, OpKind>, StepCommunication> found;  // nodes, members on each, kind
  ForEachCommunication(plan, [&](const Instruction& communication, const CommunicationUse& use) {
    if (use.per_node * use.nodes != use.members) return;
    if (use.kind == OpKind::kExchange && use.members != 2) return;
    StepCommunication& one = found[{use.nodes, use.per_node, use.kind}];
    if (one.use.members < 2) one.use = use;
    one.use.sends_only = false;  // where it is timed, all members send and receive
    one.use.bytes = std::min(std::max(one.use.bytes, use.bytes), kMostTriedBytes);
    AddNames(communication, one.groups);
  });
  const int nodes = (plan.world_size - 1) / std::max(1, plan.cluster.gpus_per_node) + 1;
  if (nodes > 1) {
    // However little steps exchange there: with short messages a link that is slow would not show.
    StepCommunication& pair = found[{2, 1, OpKind::kExchange}];
    pair.use = {.kind = OpKind::kExchange, .bytes = kMostTriedBytes, .members = 2, .per_node = 1, .nodes = 2};
    pair.groups.insert("neighbouring nodes");
  }
  std::vector<StepCommunication> all;
  for (auto& [key, one] : found) all.push_back(std::move(one));
  return all;
}

CommunicationRounds RoundsOfTrial(const Plan& plan) {
  constexpr int64_t kBatches = 3, kInARow = 3;
  CommunicationRounds rounds = {.ranks_per_node = plan.cluster.gpus_per_node};
  for (const StepCommunication& one : StepCommunications(plan)) {
    const int64_t unit = one.use.members * DTypeBytes(plan.dtype());
    const int64_t parts = std::max<int64_t>(1, std::llround(one.use.bytes / static_cast<double>(unit)));
    rounds.list.push_back({.kind = one.use.kind,
                           .per_node = one.use.per_node,
                           .nodes = one.use.nodes,
                           .bytes = unit * parts,
                           .batches = kBatches,
                           .repetitions = kInARow});
  }
  return rounds;
}

}  // namespace planwright
