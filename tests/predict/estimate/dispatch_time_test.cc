#include "planner/predict/estimate/dispatch_time.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

const Cluster kNoGpu = {.nodes = 4, .gpus_per_node = 8, .gpu = "none"};
const Cluster kNode = {.nodes = 4, .gpus_per_node = 8, .gpu = "h200_sxm"};

Module WithExperts(int ep, int64_t top_k) {
  Module module;
  module.grid.dp = module.grid.ep = ep;
  module.constants = {{"hidden", int64_t{2688}}, {"moe.experts", int64_t{128}}, {"moe.top_k", top_k}};
  module.layers.push_back({.kind = 'E', .frame = "language.layers.0", .expert_row = 0});
  return module;
}

DispatchSizes Tokens(int64_t tokens, const Cluster& cluster, DType dtype = DType::kBf16) {
  return {tokens, dtype, cluster.gpus_per_node};
}

double Rows(int ep, int64_t top_k, DType dtype, const char* dispatch) {
  return TimeDispatch(WithExperts(ep, top_k), Tokens(8192, kNoGpu, dtype), DispatchRates(kNoGpu), dispatch).rows;
}
double Seconds(int ep, int64_t top_k, const Cluster& cluster, const char* dispatch, int64_t tokens = 8192) {
  return TimeDispatch(WithExperts(ep, top_k), Tokens(tokens, cluster), DispatchRates(cluster), dispatch).seconds;
}

// A part of (ep - 1) / ep of top_k rows goes there and back. A gathered token goes to ep - 1 ranks, and as many terms
// come back, which are twice as large in bf16.
TEST(DispatchTime, CountsTheRowsThatAreSent) {
  EXPECT_EQ(Rows(2, 6, DType::kBf16, "all_to_all"), 6);
  EXPECT_EQ(Rows(2, 6, DType::kBf16, "all_gather"), 3);
  EXPECT_EQ(Rows(2, 6, DType::kFp64, "all_gather"), 2);
  EXPECT_EQ(Rows(4, 6, DType::kBf16, "all_to_all"), 9);
  EXPECT_EQ(Rows(4, 6, DType::kBf16, "all_gather"), 9);
  EXPECT_EQ(Rows(8, 6, DType::kFp32, "all_to_all"), 10.5);
  EXPECT_EQ(Rows(8, 6, DType::kFp32, "all_gather"), 14);
}

// On GPUs the tokens of all ranks are also written and read in memory, and messages between nodes are slower.
TEST(DispatchTime, DevicesAndLinksCount) {
  Cluster apart = kNode;
  apart.gpus_per_node = 1;
  EXPECT_EQ(Seconds(2, 6, kNoGpu, "all_to_all"), 0);  // of unknown speed
  Cluster no_link = kNoGpu;
  no_link.device.bandwidth = 20;
  EXPECT_EQ(Seconds(2, 6, no_link, "all_to_all"), 0);
  EXPECT_LT(Seconds(2, 6, kNode, "all_gather"), Seconds(2, 6, kNode, "all_to_all"));
  EXPECT_GT(Seconds(4, 6, kNode, "all_gather"), Seconds(4, 6, kNode, "all_to_all"));
  EXPECT_GT(Seconds(8, 6, kNode, "all_gather"), Seconds(8, 6, kNode, "all_to_all"));
  EXPECT_GT(Seconds(2, 6, apart, "all_to_all"), Seconds(2, 6, kNode, "all_to_all"));
}

std::string Dispatch(const Module& module, const std::string& wanted, const Cluster& cluster = kNode) {
  return DispatchOf(module, wanted, Tokens(8192, cluster), DispatchRates(cluster));
}

TEST(DispatchTime, TheRecipeDecides) {
  EXPECT_EQ(Dispatch(WithExperts(8, 6), "all_gather"), "all_gather");
  EXPECT_EQ(Dispatch(WithExperts(2, 6), "all_to_all"), "all_to_all");
}

TEST(DispatchTime, AutoIsTheFasterOne) {
  EXPECT_EQ(Dispatch(WithExperts(2, 6), "auto"), "all_gather");
  EXPECT_EQ(Dispatch(WithExperts(2, 1), "auto"), "all_to_all") << "one row of a token is no more than the token";
  EXPECT_EQ(Dispatch(WithExperts(4, 6), "auto"), "all_to_all");
  EXPECT_EQ(Dispatch(WithExperts(8, 6), "auto"), "all_to_all");
  EXPECT_EQ(Dispatch(WithExperts(2, 6), "auto", kNoGpu), "all_to_all") << "of unknown speed";
}

TEST(DispatchTime, NothingIsGatheredWithoutOtherRanksOrExperts) {
  EXPECT_EQ(Dispatch(WithExperts(1, 6), "all_gather"), "all_to_all");
  Module module = WithExperts(2, 6);
  module.layers.clear();
  EXPECT_EQ(Dispatch(module, "all_gather"), "all_to_all");
}

}  // namespace
}  // namespace planwright
