// Times by measured points: at a point, between two, beyond them, and where nothing was measured.
#include "planner/predict/rates/measured_rates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "planner/predict/rates/rates.h"

namespace planwright {
namespace {

MeasuredTime Took(double seconds) { return {seconds, seconds, seconds, 1}; }

MeasuredCompute Products(double flops, double bytes, double seconds) {
  return {OpKind::kLinear, DType::kBf16, flops, bytes, "", Took(seconds)};
}

// 1 TFLOP/s at 1 GFLOP, 100 TFLOP/s at 10 TFLOP.
DeviceProfile TwoPoints() {
  return {
      .gpu = "none",
      .compute = {Products(1e9, 1e6, 1e-3),
                  Products(1e13, 1e9, 0.1),
                  {OpKind::kAdd, DType::kBf16, 0, 1e6, "", Took(1e-3)}},
      .communication = {{OpKind::kAllReduce, 1e6, 4, 4, 1, Took(1e-3)}, {OpKind::kAllReduce, 1e8, 4, 4, 1, Took(1e-2)}},
      .launch = {{OpKind::kLinear, Took(5e-6)}}};
}

void Expect(const std::optional<Seconds>& found, double seconds, Known known) {
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->seconds, seconds, 1e-9 * seconds);
  EXPECT_EQ(found->known, known);
}

TEST(MeasuredRates, AtAPointItIsWhatWasMeasured) {
  const MeasuredRates rates(TwoPoints());
  Expect(rates.Compute({OpKind::kLinear, 1e9, 1e6}), 1e-3, Known::kMeasured);
  Expect(rates.Compute({OpKind::kLinear, 1e13, 1e9}), 0.1, Known::kMeasured);
  Expect(rates.Compute({OpKind::kAdd, 0, 1e6}), 1e-3, Known::kMeasured);
  Expect(rates.Communication({OpKind::kAllReduce, 1e6, 4, 4, 1}), 1e-3, Known::kMeasured);
  Expect(rates.HostLaunch(OpKind::kLinear), 5e-6, Known::kMeasured);
}

// What a probe has scaled was not measured on this device.
TEST(MeasuredRates, ScaledPointsAreBetween) {
  DeviceProfile profile = TwoPoints();
  profile.scaled_from = "base.json of 2026-11-26";
  const MeasuredRates rates(profile);
  Expect(rates.Compute({OpKind::kLinear, 1e9, 1e6}), 1e-3, Known::kBetween);
  Expect(rates.Communication({OpKind::kAllReduce, 1e6, 4, 4, 1}), 1e-3, Known::kBetween);
  Expect(rates.HostLaunch(OpKind::kLinear), 5e-6, Known::kBetween);
}

// Halfway between 1e9 and 1e13 on the scale is 1e11, and halfway between 1e12 and 1e14 FLOP/s is 1e13.
TEST(MeasuredRates, BetweenPointsTheRateIsInterpolatedOnLogarithmicScales) {
  const MeasuredRates rates(TwoPoints());
  Expect(rates.Compute({OpKind::kLinear, 1e11, 1e7}), 1e-2, Known::kBetween);
  // 1e9 bytes/s at 1e6, 1e10 at 1e8.
  Expect(rates.Communication({OpKind::kAllReduce, 1e7, 4, 4, 1}), 1e7 / std::sqrt(1e19), Known::kBetween);
}

TEST(MeasuredRates, BeyondThePointsTheNearestRateStays) {
  const MeasuredRates rates(TwoPoints());
  Expect(rates.Compute({OpKind::kLinear, 1e8, 1e6}), 1e-4, Known::kEstimated);
  Expect(rates.Compute({OpKind::kLinear, 1e14, 1e9}), 1, Known::kEstimated);
  Expect(rates.Compute({OpKind::kAdd, 0, 3e6}), 3e-3, Known::kEstimated);
}

// 16 KiB in 13 us are 1.3 GB/s, which says nothing of 100 MB over links of 450 GB/s.
TEST(MeasuredRates, BeyondALatencyTheDataSheetAddsTheFurtherBytes) {
  const auto rates_of = [](double bytes, double seconds) {
    RateTable table;
    table.device = {.gpu = "h200_sxm", .bf16 = 1e15, .memory_speed = 4.8e12, .node_link = 450e9};
    return Rates(table, {.gpu = "h200_sxm", .communication = {{OpKind::kAllReduce, bytes, 2, 2, 1, Took(seconds)}}}, 2);
  };
  const auto of = [](double bytes) { return CommunicationUse{OpKind::kAllReduce, bytes, 2, 2, 1}; };
  const Rates latency = rates_of(16384, 13e-6);
  Expect(latency.Communication(of(16384)), 13e-6, Known::kMeasured);
  const double per_byte = 1 / (RateTable().link * 450e9);  // an all_reduce of two sends each byte once
  Expect(latency.Communication(of(1e8)), 13e-6 + (1e8 - 16384) * per_byte, Known::kEstimated);
  // A slow link is believed: 100 MB in 2 ms are 50 GB/s, and so are 200 MB.
  Expect(rates_of(1e8, 2e-3).Communication(of(2e8)), 4e-3, Known::kEstimated);
}

TEST(MeasuredRates, OfPointsOfOneSizeTheOneWithTheNearestBytesCounts) {
  DeviceProfile profile = TwoPoints();
  profile.compute = {Products(1e9, 1e6, 1e-3), Products(1e9, 8e6, 4e-3), Products(1e10, 1e6, 1e-2)};
  const MeasuredRates rates(profile);
  Expect(rates.Compute({OpKind::kLinear, 1e9, 8e6}), 4e-3, Known::kMeasured);
  Expect(rates.Compute({OpKind::kLinear, 1e9, 2e6}), 1e-3, Known::kBetween);
  Expect(rates.Compute({OpKind::kLinear, 1e9, 7e6}), 4e-3, Known::kBetween);
}

// CPU ranks share cores and memory: a product takes 1 ms on one rank and 3 ms beside a second one.
TEST(MeasuredRates, OfCpuRanksAreThoseOfAsManyRanks) {
  DeviceProfile profile = TwoPoints();
  profile.compute.push_back({OpKind::kLinear, DType::kBf16, 1e9, 1e6, "", Took(3e-3), 2});
  profile.launch.push_back({OpKind::kLinear, Took(7e-6), 2});
  const MeasuredRates one(profile, 1), two(profile, 2), four(profile, 4);
  Expect(one.Compute({OpKind::kLinear, 1e9, 1e6}), 1e-3, Known::kMeasured);
  Expect(two.Compute({OpKind::kLinear, 1e9, 1e6}), 3e-3, Known::kMeasured);
  // Of the nearest number, and not as well known.
  Expect(four.Compute({OpKind::kLinear, 1e9, 1e6}), 3e-3, Known::kEstimated);
  // Not measured on two ranks: as much slower as what was measured on both.
  Expect(two.Compute({OpKind::kAdd, 0, 1e6}), 3e-3, Known::kEstimated);
  Expect(one.HostLaunch(OpKind::kLinear), 5e-6, Known::kMeasured);
  Expect(two.HostLaunch(OpKind::kLinear), 7e-6, Known::kMeasured);
  Expect(four.HostLaunch(OpKind::kLinear), 7e-6, Known::kEstimated);
}

// A GPU is one rank's: another number of ranks is as good, and where a size has both, the nearer one counts.
TEST(MeasuredRates, OfGpusAreThoseOfAllNumbersOfRanks) {
  DeviceProfile profile = TwoPoints();
  profile.gpu = "h200_sxm";
  profile.compute.push_back({OpKind::kLinear, DType::kBf16, 1e9, 1e6, "", Took(2e-3), 8});
  const MeasuredRates one(profile, 1), many(profile, 8);
  Expect(one.Compute({OpKind::kLinear, 1e9, 1e6}), 1e-3, Known::kMeasured);
  Expect(many.Compute({OpKind::kLinear, 1e9, 1e6}), 2e-3, Known::kMeasured);
  Expect(many.Compute({OpKind::kAdd, 0, 1e6}), 1e-3, Known::kMeasured);
  Expect(many.HostLaunch(OpKind::kLinear), 5e-6, Known::kMeasured);
}

TEST(MeasuredRates, WhatWasTimedAloneIsNoMeasurementOfAStep) {
  DeviceProfile profile = TwoPoints();
  profile.communication[0].scaled = 1.2;
  const MeasuredRates rates(profile);
  Expect(rates.Communication({OpKind::kAllReduce, 1e6, 4, 4, 1}), 1e-3, Known::kBetween);
  Expect(rates.Communication({OpKind::kAllReduce, 1e8, 4, 4, 1}), 1e-2, Known::kMeasured);
}

TEST(MeasuredRates, KnowSpeedsBesideOthersAndUnequalExperts) {
  DeviceProfile profile = TwoPoints();
  profile.beside = {{OpKind::kLinear, {0.4, 0.3, 0.5, 9}}};
  profile.skew = {{OpKind::kExperts, 2, Took(1.2)}, {OpKind::kExperts, 4, Took(2.0)}};
  const MeasuredRates rates(profile);
  EXPECT_EQ(rates.Beside(OpKind::kLinear), 0.4);
  EXPECT_FALSE(rates.Beside(OpKind::kAdd));
  for (const auto& [fullest, factor] : {std::pair(0.5, 1.0), {1, 1}, {1.5, 1.1}, {2, 1.2}, {3, 1.6}, {4, 2}, {9, 2}})
    EXPECT_NEAR(rates.Skew(OpKind::kExperts, fullest), factor, 1e-9) << fullest;
  EXPECT_EQ(rates.Skew(OpKind::kLinear, 4), 1);
  Cluster cluster{.gpu = "h200_sxm", .profile = profile};
  EXPECT_EQ(RatesOf(cluster).Beside(OpKind::kLinear), 0.4);
  EXPECT_EQ(RatesOf(cluster).Beside(OpKind::kAdd), 0.15);  // of data sheets
  EXPECT_NEAR(RatesOf(cluster).Skew(OpKind::kExperts, 3), 1.6, 1e-9);
}

TEST(MeasuredRates, WhatWasNotMeasuredIsNotKnownHere) {
  const MeasuredRates rates(TwoPoints());
  EXPECT_FALSE(rates.Compute({OpKind::kGelu, 0, 1e6}));
  EXPECT_FALSE(rates.Compute({OpKind::kLinear, 1e9, 1e6, DType::kFp32}));
  EXPECT_FALSE(rates.Communication({OpKind::kAllReduce, 1e6, 8, 8, 1}));
  EXPECT_FALSE(rates.Communication({OpKind::kAllReduce, 1e6, 4, 2, 2}));
  EXPECT_FALSE(rates.HostLaunch(OpKind::kAdd));
  Expect(rates.Compute({OpKind::kAdd, 0, 0}), 0, Known::kMeasured);
}

TEST(Rates, OfAProfileTakeItsTimesBeforeThoseOfTheDataSheet) {
  Cluster cluster{.gpu = "h200_sxm"};
  const double estimated = RatesOf(cluster).Compute({OpKind::kGelu, 0, 1e6}).seconds;
  cluster.profile = TwoPoints();
  const Rates rates = RatesOf(cluster);
  EXPECT_EQ(rates.Compute({OpKind::kLinear, 1e9, 1e6}).seconds, 1e-3);
  EXPECT_EQ(rates.Compute({OpKind::kGelu, 0, 1e6}).seconds, estimated);
  EXPECT_EQ(rates.HostLaunch(OpKind::kLinear).seconds, 5e-6);
  EXPECT_GT(rates.HostLaunch(OpKind::kAdd).seconds, 0);
}

// A device without data sheet: what was not measured runs at the best that was.
TEST(Rates, OfAProfileAloneEstimateByTheBestThatWasMeasured) {
  const Rates none = RatesOf(Cluster{});
  EXPECT_FALSE(none.known());
  Cluster cluster;
  cluster.profile = TwoPoints();
  const Rates rates = RatesOf(cluster);
  EXPECT_TRUE(rates.known());
  // 1e14 FLOP/s. Of memory 1e9 bytes/s; of messages 9.9e7 bytes in 9 ms, and an all_reduce of
  // four sends each one and a half times: 1.65e10 bytes/s, which leaves 0.909 ms for its six rounds.
  const Seconds product = rates.Compute({OpKind::kLinearInputGrad, 1e14, 1e6, DType::kFp32});
  EXPECT_NEAR(product.seconds, 1, 1e-3);
  EXPECT_EQ(product.known, Known::kEstimated);
  EXPECT_NEAR(rates.Compute({OpKind::kGelu, 0, 1e10}).seconds, 1, 1e-3);
  EXPECT_NEAR(rates.Communication({OpKind::kAllGather, 1e10, 2, 2, 1}).seconds, 0.5 / 1.65 + 0.909e-3 / 6, 1e-6);
  EXPECT_EQ(rates.HostLaunch(OpKind::kAdd).seconds, 0);
}

// What tiny messages take is a latency: it says nothing of what a larger one takes for its bytes.
TEST(Rates, OfTinyMessagesAreNoBandwidth) {
  Cluster cluster;
  cluster.profile = TwoPoints();
  cluster.profile.communication = {{OpKind::kAllReduce, 64, 2, 2, 1, Took(1e-3)},
                                   {OpKind::kAllReduce, 256, 2, 2, 1, Took(1.1e-3)}};
  // Memory moves 1e10 bytes/s. An all_reduce of two has two rounds, an all_gather one.
  EXPECT_NEAR(RatesOf(cluster).Communication({OpKind::kAllGather, 1e6, 2, 2, 1}).seconds, 5e-4 + 5e-5, 1e-6);
  EXPECT_NEAR(RatesOf(cluster).Communication({OpKind::kAllGather, 256, 2, 2, 1}).seconds, 5e-4, 1e-6);
  EXPECT_NEAR(RatesOf(cluster).Communication({OpKind::kAllGather, 256, 2, 1, 2}).seconds, 5e-4 + 1e-5, 1e-6);
  // One size is no bandwidth either.
  cluster.profile.communication.pop_back();
  EXPECT_NEAR(RatesOf(cluster).Communication({OpKind::kAllGather, 1e6, 2, 2, 1}).seconds, 5e-4 + 5e-5, 1e-6);
  // A message that takes a hundred times as long is one, of whatever kind: 1e6 bytes in 0.1 s.
  cluster.profile.communication.push_back({OpKind::kExchange, 1e3, 2, 2, 1, Took(1e-3)});
  cluster.profile.communication.push_back({OpKind::kExchange, 1.001e6, 2, 2, 1, Took(0.101)});
  EXPECT_NEAR(RatesOf(cluster).Communication({OpKind::kAllGather, 1e6, 2, 2, 1}).seconds, 0.05 + 0.9e-3, 1e-4);
  // Without any, a message passes at the speed of memory.
  cluster.profile.communication.clear();
  EXPECT_NEAR(RatesOf(cluster).Communication({OpKind::kAllGather, 1e10, 2, 2, 1}).seconds, 0.5, 1e-3);
}

// Nodes of two ranks: within a node a gigabyte a second and 1 us a round, between nodes 10 MB/s of each rank's share
// and 1 ms. A ring of three nodes, which nobody measured, has both ways' figures from groups of other shapes.
TEST(Rates, OfAProfileKnowTheNetworkApartFromTheLinks) {
  Cluster cluster{.gpus_per_node = 2, .profile = TwoPoints()};
  const auto add = [&](OpKind kind, double bytes, int per_node, int nodes, double seconds) {
    cluster.profile.communication.push_back({kind, bytes, per_node * nodes, per_node, nodes, Took(seconds)});
  };
  cluster.profile.communication.clear();
  for (double bytes : {1e4, 1e8}) {
    add(OpKind::kAllGather, bytes, 2, 1, 1e-6 + 0.5 * bytes / 1e9);
    add(OpKind::kAllReduce, bytes, 2, 2, 6e-3 + 1.5 / 2 * bytes / 1e7);
    add(OpKind::kExchange, bytes, 1, 2, 1e-3 + bytes / 1e7);
  }
  const Rates rates = RatesOf(cluster);
  const auto seconds = [&](const CommunicationUse& use) { return rates.Communication(use).seconds; };
  EXPECT_NEAR(seconds({OpKind::kAllReduce, 1e7, 2, 2, 1}), 2e-6 + 1e7 / 1e9, 1e-6);
  EXPECT_NEAR(seconds({OpKind::kAllReduce, 1e7, 6, 2, 3}), 10e-3 + 2.0 * 5 / 6 / 2 * 1e7 / 1e7, 1e-5);
  EXPECT_NEAR(seconds({OpKind::kReduceScatter, 1e7, 3, 1, 3}), 4e-3 + 2.0 * 2 / 3, 1e-5);
  // Who only sends goes on when the message is announced, half a round after its receiver has come, unless it is more
  // than a host takes over.
  const CommunicationUse sends = {OpKind::kExchange, 1e6, 2, 1, 2, true};
  EXPECT_EQ(seconds(sends), 0);
  EXPECT_EQ(rates.Announcement(sends), 0);
  EXPECT_NEAR(rates.Announcement({OpKind::kExchange, 1e6, 2, 1, 2}), 0.5e-3, 1e-6);
  EXPECT_EQ(rates.Announcement({OpKind::kAllReduce, 1e6, 2, 1, 2}), 0);
  EXPECT_EQ(rates.NetworkShare(sends, 0.5e-3), 0);
  EXPECT_NEAR(seconds({OpKind::kExchange, 1e8, 2, 1, 2, true}), 10 + 1e-3, 1e-5);
  // Of an all_reduce of 1e5 bytes, 7.5 of 13.5 ms are bytes on their way out of the node.
  EXPECT_NEAR(rates.NetworkShare({OpKind::kAllReduce, 1e5, 4, 2, 2}, 13.5e-3), 7.5 / 13.5, 1e-4);
  EXPECT_EQ(rates.NetworkShare({OpKind::kAllReduce, 1e5, 2, 2, 1}, 13.5e-3), 0);
}

// A link that the recipe gives stays, with the latency of the table.
TEST(Rates, OfAProfileKeepTheLinkOfTheRecipe) {
  Cluster cluster{.device = {.peak = 1, .bandwidth = 10, .link = 2, .network = 1}, .profile = TwoPoints()};
  EXPECT_NEAR(RatesOf(cluster).Communication({OpKind::kAllGather, 1.36e9, 2, 2, 1}).seconds, 0.5 + 30e-6, 1e-9);
}

// Seconds beside FLOPs would be no sum.
TEST(Rates, OfAProfileWithoutProductsOnADeviceWithoutDataSheetAreFlopsThroughout) {
  Cluster cluster;
  cluster.profile = TwoPoints();
  std::erase_if(cluster.profile.compute, [](const MeasuredCompute& point) { return point.flops > 0; });
  ASSERT_FALSE(cluster.profile.compute.empty());
  const Rates rates = RatesOf(cluster);
  EXPECT_FALSE(rates.known());
  EXPECT_EQ(rates.Compute({OpKind::kLinear, 1e9, 1e6}).seconds, 1e9);
  EXPECT_EQ(rates.Compute({OpKind::kAdd, 0, 1e6}).seconds, 0);
  EXPECT_EQ(rates.HostLaunch(OpKind::kLinear).seconds, 0);
  EXPECT_EQ(rates.Communication({OpKind::kAllReduce, 1e6, 4, 4, 1}).seconds, 0);
}

TEST(Device, TakesFiguresOfItsOwn) {
  const Device own = DeviceOf(Cluster{.gpu = "h200_sxm", .device = {.memory = 96, .peak = 100, .link = 50}});
  EXPECT_EQ(own.memory, int64_t{96'000'000'000});
  EXPECT_EQ(own.peak("bf16"), 100e12);
  EXPECT_EQ(own.peak("fp32"), 100e12);
  EXPECT_EQ(own.node_link, 50e9);
  EXPECT_EQ(own.memory_speed, DeviceOf("h200_sxm").memory_speed);
  EXPECT_EQ(own.network, DeviceOf("h200_sxm").network);
}

}  // namespace
}  // namespace planwright
