#include "planner/estimate/dispatch_time.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

Module WithExperts(int ep, int64_t top_k) {
  Module module;
  module.grid.dp = module.grid.ep = ep;
  module.constants = {{"hidden", int64_t{2688}}, {"moe.experts", int64_t{128}}, {"moe.top_k", top_k}};
  module.layers.push_back({.kind = 'E', .frame = "language.layers.0", .expert_row = 0});
  return module;
}

std::string Auto(int ep, int64_t top_k, const char* gpu, int gpus_per_node = 8) {
  return DispatchOf(WithExperts(ep, top_k), {.nodes = 4, .gpus_per_node = gpus_per_node, .gpu = gpu}, 2, "auto");
}

// Each token goes to ep - 1 ranks if it is gathered, and to top_k (ep - 1) / ep of them otherwise.
TEST(DispatchTime, FewRanksAndManyChoicesGather) {
  for (const char* gpu : {"none", "a100_sxm", "h100_sxm", "h200_sxm"}) {
    EXPECT_EQ(Auto(2, 6, gpu), "all_gather") << gpu;
    EXPECT_EQ(Auto(4, 6, gpu), "all_gather") << gpu;
    EXPECT_EQ(Auto(8, 6, gpu), "all_to_all") << gpu;
    EXPECT_EQ(Auto(2, 1, gpu), "all_to_all") << gpu;
  }
}

// On GPUs the tokens of all ranks are also written and read in memory. That decides where messages are about equal, and
// less so where links are slow.
TEST(DispatchTime, DevicesAndLinksCount) {
  const Module module = WithExperts(2, 2);
  const Cluster none = {.nodes = 2, .gpus_per_node = 8, .gpu = "none"},
                node = {.nodes = 2, .gpus_per_node = 8, .gpu = "h200_sxm"},
                apart = {.nodes = 2, .gpus_per_node = 1, .gpu = "h200_sxm"};
  EXPECT_EQ(TimeDispatch(module, none, 2).all_gather, TimeDispatch(module, none, 2).all_to_all);
  EXPECT_GT(TimeDispatch(module, node, 2).all_gather, TimeDispatch(module, node, 2).all_to_all);
  EXPECT_GT(TimeDispatch(module, apart, 2).all_to_all, TimeDispatch(module, node, 2).all_to_all);
}

TEST(DispatchTime, TheRecipeDecides) {
  const Cluster cluster = {.nodes = 1, .gpus_per_node = 8, .gpu = "h200_sxm"};
  EXPECT_EQ(DispatchOf(WithExperts(8, 6), cluster, 2, "all_gather"), "all_gather");
  EXPECT_EQ(DispatchOf(WithExperts(2, 6), cluster, 2, "all_to_all"), "all_to_all");
}

TEST(DispatchTime, WithoutOtherRanksOrExpertsThereIsNone) {
  EXPECT_EQ(Auto(1, 6, "h200_sxm"), "");
  Module module = WithExperts(2, 6);
  module.layers.clear();
  EXPECT_EQ(DispatchOf(module, {.nodes = 1, .gpus_per_node = 2, .gpu = "h200_sxm"}, 2, "all_gather"), "");
}

}  // namespace
}  // namespace planwright
