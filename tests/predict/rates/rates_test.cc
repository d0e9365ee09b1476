// Times of instructions from data sheets and shares: figures that can be computed by hand.
#include "planner/predict/rates/rates.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

// Round numbers: 100 TFLOP/s, 1 TB/s of memory, 100 GB/s of links, 10 GB/s of network, all reached, and no starts.
RateTable RoundTable() {
  RateTable table;
  table.device = {"round", 0, 100e12, 10e12, 5e12, 1e12, 100e9, 10e9, 50e9};
  for (KindRate& kind : table.kinds) kind = {.products = 1};
  table.memory = table.link = table.network = 1;
  table.start = table.latency = table.node_latency = 0;
  return table;
}

double Compute(const RateTable& table, const ComputeUse& use) { return Rates(table).Compute(use).seconds; }

TEST(Rates, ProductsOrBytesDecideWhicheverTakeLonger) {
  RateTable table = RoundTable();
  EXPECT_DOUBLE_EQ(Compute(table, {OpKind::kLinear, 1e12, 1e9}), 0.01);
  EXPECT_DOUBLE_EQ(Compute(table, {OpKind::kLinear, 1e12, 50e9}), 0.05);
  EXPECT_DOUBLE_EQ(Compute(table, {OpKind::kLinear, 1e12, 1e9, DType::kFp32}), 0.1);
  EXPECT_DOUBLE_EQ(Compute(table, {OpKind::kLinear, 1e12, 1e9, DType::kFp64}), 0.2);
  KindRate& linear = table.kinds[static_cast<size_t>(OpKind::kLinear)];
  linear = {.products = 0.5, .passes = 3, .beside = 2};
  EXPECT_DOUBLE_EQ(Compute(table, {OpKind::kLinear, 1e12, 1e9}), 0.02 + 0.002);
  EXPECT_DOUBLE_EQ(Compute(table, {OpKind::kLinear, 1e9, 1e9}), 0.003 + 0.002);
}

TEST(Rates, AKernelHasAStartAndNothingTakesNoTime) {
  RateTable table = RoundTable();
  table.start = 1e-3;
  EXPECT_DOUBLE_EQ(Compute(table, {OpKind::kAdd, 0, 1e9}), 2e-3);
  EXPECT_EQ(Compute(table, {OpKind::kAdd, 0, 0}), 0);
}

// docs/gpu.md#how-fast-are-decoders: kernels of Qwen3-30B-A3B's sizes, 8,192 tokens. FLOPs and bytes as ops.def has
// them.
TEST(Rates, RoutersAndExpertsOfDecodersTakeWhatTheirKernelsTook) {
  const Rates rates = RatesOf({.gpu = "h200_sxm"});
  constexpr double kTokens = 8192, kHidden = 2048, kExperts = 128, kTopK = 8, kFfn = 768, kRows = kTokens * kTopK;
  constexpr double kTokenBytes = 2 * kTokens * kHidden, kScoreBytes = 4 * kTokens * kExperts,
                   kGate = kExperts * kHidden;
  constexpr double kRowBytes = 2 * kRows * kHidden, kPreBytes = 2 * kRows * 2 * kFfn,
                   kMatrices = kExperts * 3 * kHidden * kFfn, kProducts = 6 * kRows * kHidden * kFfn;
  const auto ms = [&](OpKind kind, double flops, double bytes) {
    return 1e3 * rates.Compute({kind, flops, bytes}).seconds;
  };
  const double router = 2 * kTokens * kGate;
  EXPECT_NEAR(ms(OpKind::kRouteSoftmax, router, kTokenBytes + 2 * kScoreBytes + 2 * kGate), 0.064, 0.005);
  EXPECT_NEAR(ms(OpKind::kRouteSoftmaxGrad, 2 * router, 2 * kTokenBytes + kScoreBytes + 10 * kGate), 0.090, 0.007);
  EXPECT_NEAR(ms(OpKind::kGatedExperts, kProducts, 2 * kRowBytes + kPreBytes + 2 * kMatrices), 1.05, 0.1);
  EXPECT_NEAR(ms(OpKind::kGatedExpertsGrad, 2 * kProducts, 3 * kRowBytes + kPreBytes + 10 * kMatrices), 3.0, 0.2);
}

// Of the flash kernel there is another share only where cuDNN's kernel is the usual one.
TEST(Rates, AttentionOfTheFlashKernelIsSlowerOnHopper) {
  const auto seconds = [](const char* gpu, OpKind kind, bool flash) {
    return RatesOf({.gpu = gpu}).Compute({.kind = kind, .flops = 1e15, .flash = flash}).seconds;
  };
  for (OpKind kind : {OpKind::kCausalAttention, OpKind::kCausalAttentionAllKv})
    EXPECT_NEAR(seconds("h200_sxm", kind, true) / seconds("h200_sxm", kind, false), 0.53 / 0.35, 1e-4);
  for (OpKind kind : {OpKind::kCausalAttentionGrad, OpKind::kCausalAttentionAllKvGrad})
    EXPECT_NEAR(seconds("h100_sxm", kind, true) / seconds("h100_sxm", kind, false), 0.36 / 0.22, 1e-4);
  EXPECT_EQ(seconds("a100_sxm", OpKind::kCausalAttention, true), seconds("a100_sxm", OpKind::kCausalAttention, false));
  EXPECT_EQ(seconds("h200_sxm", OpKind::kLinear, true), seconds("h200_sxm", OpKind::kLinear, false));
}

// Two H200 copied 76.9 GB in 0.72 s (docs/gpu.md#what-does-a-checkpoint-cost).
TEST(Rates, CopiesGoOverTheLinkToTheHost) {
  RateTable table = RoundTable();
  table.host_link = 0.5;
  EXPECT_DOUBLE_EQ(Rates(table).CopyToHost(1e9).value(), 0.04);
  table.device.host_link = 0;
  EXPECT_FALSE(Rates(table).CopyToHost(1e9).has_value());
  EXPECT_NEAR(RatesOf({.gpu = "h200_sxm"}).CopyToHost(76.9e9 / 2).value(), 0.72, 0.02);
  EXPECT_FALSE(RatesOf({.gpu = "none"}).CopyToHost(1e9).has_value());
  // CPU ranks copy within the memory of their host: each byte is read and written.
  const Cluster cpus = {.gpu = "none", .device = {.peak = 0.1, .bandwidth = 20}};
  EXPECT_DOUBLE_EQ(RatesOf(cpus).CopyToHost(8e9).value(), 1);
}

double Communicate(OpKind kind, double bytes, int members, int per_node, int nodes) {
  return Rates(RoundTable()).Communication({kind, bytes, members, per_node, nodes}).seconds;
}

TEST(Rates, CommunicationTakesTheSlowerOfLinkAndNetwork) {
  // On one node: (n - 1) / n of the value passes each link, and of a sum twice.
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kAllGather, 1e9, 4, 4, 1), 0.0075);
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kReduceScatter, 1e9, 4, 4, 1), 0.0075);
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kAllReduce, 1e9, 4, 4, 1), 0.015);
  // Two nodes with two members each: half of the value comes over the network, by two members at once.
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kAllGather, 1e9, 4, 2, 2), 0.025);
  // A member alone on its node has nobody to share the network with.
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kAllGather, 1e9, 4, 1, 4), 0.075);
  // Of what a member sends, its own part stays.
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kAllToAllV, 1e9, 4, 4, 1), 0.0075);
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kAllToAllV, 1e9, 4, 2, 2), 0.05);
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kExchange, 1e9, 2, 2, 1), 0.01);
  EXPECT_DOUBLE_EQ(Communicate(OpKind::kExchange, 1e9, 2, 1, 2), 0.1);
  EXPECT_EQ(Communicate(OpKind::kAllGather, 1e9, 1, 1, 1), 0);
}

TEST(Rates, FiguresOfDataSheetsAreEstimated) {
  const Rates rates = RatesOf({.gpu = "h100_sxm"});
  ASSERT_TRUE(rates.known());
  const Seconds product = rates.Compute({OpKind::kLinear, 1e15, 1e9});  // its operands pass twice beside its work
  EXPECT_EQ(product.known, Known::kEstimated);
  EXPECT_NEAR(product.seconds, 1e15 / (0.9 * 989.4e12) + 2e9 / (0.8 * 3.35e12), 1e-5);
  EXPECT_GT(rates.HostLaunch(OpKind::kLinear).seconds, 0);
}

TEST(Rates, ACpuHasFlopsInPlaceOfSeconds) {
  const Rates rates = RatesOf(Cluster{});
  EXPECT_FALSE(rates.known());
  EXPECT_EQ(rates.Compute({OpKind::kLinear, 1e15, 1e9}).seconds, 1e15);
  EXPECT_EQ(rates.Communication({OpKind::kAllReduce, 1e9, 8, 8, 1}).seconds, 0);
  EXPECT_EQ(rates.HostLaunch(OpKind::kLinear).seconds, 0);
}

}  // namespace
}  // namespace planwright
