#include "planner/predict/rates/traffic.h"

#include <algorithm>
#include <cmath>

namespace planwright {
namespace {

// The share of a value that crosses each of the cuts of a ring of so many.
double RingShare(double members) { return members > 1 ? (members - 1) / members : 0; }

// A ring. NCCL has one for each GPU of a node, so each value is cut among the node's members, and what crosses between
// nodes is what nodes need from each other. Gloo has one ring for all: its members send on what they have, and of each
// node one member sends to the next node.
Traffic RingOf(const CommunicationUse& use, Transport transport) {
  const double members = use.members, here = std::max(1, use.per_node);
  const bool gloo = transport == Transport::kGloo;
  // A sum that all get goes round twice. LibTorch's reduce_scatter over Gloo is an all_reduce of which each member
  // keeps its part.
  const bool scatters = use.kind == OpKind::kReduceScatter || use.kind == OpKind::kScatterTokens;
  const double passes = use.kind == OpKind::kAllReduce || (gloo && scatters) ? 2 : 1;
  const double crossing = use.nodes <= 1 ? 0 : RingShare(gloo ? members : use.nodes);
  return {.link = passes * use.bytes * RingShare(members),
          .network = passes * use.bytes * crossing / here,
          .rounds = gloo ? passes * (members - 1) : 1};
}

}  // namespace

Traffic TrafficOf(const CommunicationUse& use, Transport transport) {
  const double members = use.members, here = std::max(1, use.per_node);
  switch (use.kind) {
    case OpKind::kAllToAll:
    case OpKind::kAllToAllV:
    case OpKind::kReshard:
    // A message to each member, all at once. These two also: a member sends its own rows to each other one, or to each
    // the rows that are his.
    case OpKind::kAllGatherV:
    case OpKind::kReduceScatterV:
      return {.link = use.bytes * (here - 1) / members, .network = use.bytes * (members - here) / members};
    case OpKind::kExchange: return {.link = use.nodes > 1 ? 0 : use.bytes, .network = use.nodes > 1 ? use.bytes : 0};
    case OpKind::kBroadcast: {
      // Gloo's is a tree: who has the value sends it on until all have it, each member of the root's node to those of
      // other nodes.
      const bool gloo = transport == Transport::kGloo;
      const double rounds = gloo ? std::ceil(std::log2(members)) : 1;
      const double copies = use.nodes <= 1 ? 0 : gloo ? std::ceil(std::log2(use.nodes)) : 1;
      return {.link = use.bytes, .network = use.bytes * copies, .rounds = rounds};
    }
    default: return RingOf(use, transport);
  }
}

}  // namespace planwright
