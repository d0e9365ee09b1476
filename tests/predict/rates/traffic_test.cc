// What communications send over links and network. Gloo's figures were counted at the devices of nodes: ranks of
// LibTorch 2.11 in network namespaces of their own sent these, and 3 to 7 % of headers (/proc/net/dev, messages of
// 256 KiB and 1 MiB).
#include "planner/predict/rates/traffic.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

// Of a value of one byte over so many nodes with so many members each: bytes over the network of a node.
double OfNode(OpKind kind, int nodes, int per_node, Transport transport) {
  return per_node * TrafficOf({kind, 1, nodes * per_node, per_node, nodes}, transport).network;
}

TEST(Traffic, OfGlooIsWhatWasCounted) {
  struct Counted {
    OpKind kind;
    double two_nodes, two_of_two, four_nodes;
  };
  for (const auto& [kind, two_nodes, two_of_two, four_nodes] : {Counted{OpKind::kAllReduce, 1, 1.5, 1.5},
                                                                {OpKind::kReduceScatter, 1, 1.5, 1.5},
                                                                {OpKind::kAllGather, 0.5, 0.75, 0.75},
                                                                {OpKind::kAllToAllV, 0.5, 1, 0.75},
                                                                {OpKind::kBroadcast, 1, 2, 2}}) {
    EXPECT_DOUBLE_EQ(OfNode(kind, 2, 1, Transport::kGloo), two_nodes) << OpName(kind);
    EXPECT_DOUBLE_EQ(OfNode(kind, 2, 2, Transport::kGloo), two_of_two) << OpName(kind);
    EXPECT_DOUBLE_EQ(OfNode(kind, 4, 1, Transport::kGloo), four_nodes) << OpName(kind);
  }
  EXPECT_DOUBLE_EQ(OfNode(OpKind::kExchange, 2, 1, Transport::kGloo), 1);
}

TEST(Traffic, OfGloosRingsHasARoundForEachMemberAndPass) {
  const auto rounds = [](OpKind kind, Transport transport) { return TrafficOf({kind, 1, 8, 2, 4}, transport).rounds; };
  EXPECT_EQ(rounds(OpKind::kAllReduce, Transport::kGloo), 14);
  EXPECT_EQ(rounds(OpKind::kReduceScatter, Transport::kGloo), 14);
  EXPECT_EQ(rounds(OpKind::kAllGather, Transport::kGloo), 7);
  EXPECT_EQ(rounds(OpKind::kBroadcast, Transport::kGloo), 3);
  EXPECT_EQ(rounds(OpKind::kAllToAllV, Transport::kGloo), 1);
  EXPECT_EQ(rounds(OpKind::kAllReduce, Transport::kNccl), 1);
}

// NCCL's rings use the network of each GPU of a node, so of a node passes what it needs from the others, once.
TEST(Traffic, OfNcclIsSharedByTheMembersOfANode) {
  EXPECT_DOUBLE_EQ(OfNode(OpKind::kAllReduce, 2, 2, Transport::kNccl), 1);
  EXPECT_DOUBLE_EQ(OfNode(OpKind::kReduceScatter, 2, 2, Transport::kNccl), 0.5);
  EXPECT_DOUBLE_EQ(OfNode(OpKind::kAllGather, 4, 1, Transport::kNccl), 0.75);
}

// Rows of unequal numbers are sent from each member to each other one, whatever the backend: also twice to a node.
TEST(Traffic, OfUnequalRowsGoesToEachMember) {
  for (Transport transport : {Transport::kGloo, Transport::kNccl}) {
    EXPECT_DOUBLE_EQ(OfNode(OpKind::kAllGatherV, 2, 2, transport), 1);
    EXPECT_DOUBLE_EQ(OfNode(OpKind::kReduceScatterV, 2, 2, transport), 1);
    EXPECT_DOUBLE_EQ(TrafficOf({OpKind::kAllGatherV, 1, 4, 4, 1}, transport).link, 0.75);
  }
}

TEST(Traffic, WithinANodeLeavesItNowhere) {
  for (OpKind kind : {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kAllToAllV, OpKind::kExchange, OpKind::kBroadcast,
                      OpKind::kAllGatherV})
    EXPECT_EQ(TrafficOf({kind, 1, 2, 2, 1}, Transport::kGloo).network, 0) << OpName(kind);
}

}  // namespace
}  // namespace planwright
