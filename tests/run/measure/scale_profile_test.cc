// A profile is scaled by what a probe took: each class of uses by its own factor, and by the uses that both know.
#include "planner/run/measure/scale_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MeasuredTime Took(double seconds) { return {seconds, 0.5 * seconds, 2 * seconds, 3}; }

MeasuredCompute Use(OpKind kind, double flops, double bytes, double seconds) {
  return {kind, DType::kBf16, flops, bytes, "", Took(seconds)};
}

ProbedBase Base() {
  return {{.gpu = "h200_sxm",
           .device = "NVIDIA H200",
           .driver = "1",
           .date = "2026-11-26",
           .compute = {Use(OpKind::kLinear, 1e9, 1e6, 1e-3), Use(OpKind::kLinear, 1e11, 1e8, 0.1),
                       Use(OpKind::kCausalAttention, 1e10, 1e6, 2e-3), Use(OpKind::kAdd, 0, 1e6, 1e-4),
                       Use(OpKind::kAdd, 0, 1e8, 1e-2)},
           .communication = {{OpKind::kAllReduce, 1e6, 2, 2, 1, Took(1e-3)}},
           .launch = {{OpKind::kLinear, Took(4e-6)}, {OpKind::kAdd, Took(2e-6)}},
           .beside = {{OpKind::kLinear, {0.5, 0.25, 0.75, 12}}},
           .skew = {{OpKind::kExperts, 2, Took(1.25)}}},
          "base.json"};
}

// Uses of the base's sizes with the factors 2, 3 and 0.5, and launches with 4.
DeviceProfile Probe() {
  return {.gpu = "h200_sxm",
          .device = "NVIDIA H200",
          .driver = "2",
          .libraries = "of the probe",
          .tool = "this one",
          .hosts = "1 host",
          .date = "2026-11-30",
          .compute = {Use(OpKind::kLinear, 1e9, 1e6, 2e-3), Use(OpKind::kCausalAttention, 1e10, 1e6, 6e-3),
                      Use(OpKind::kAdd, 0, 1e6, 0.5e-4)},
          .launch = {{OpKind::kAdd, Took(8e-6)}}};
}

// Steps that are not known have each use once.
absl::StatusOr<DeviceProfile> Scaled(const ProbedBase& base, const DeviceProfile& probe) {
  return ScaledProfile(base, probe, StepUses());
}

std::map<std::string, double> FactorsOf(const DeviceProfile& profile) {
  std::map<std::string, double> factors;
  for (const ScaledUses& of : profile.scaled_by) factors[of.uses] = of.factor;
  return factors;
}

TEST(ScaleProfile, MultipliesEachClassByItsFactor) {
  const absl::StatusOr<DeviceProfile> scaled = Scaled(Base(), Probe());
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_THAT(scaled->scaled_by,
              ElementsAre(ScaledUses{"products", 2, 2, 2, 1}, ScaledUses{"attention", 3, 3, 3, 1},
                          ScaledUses{"the rest", 0.5, 0.5, 0.5, 1}, ScaledUses{"launches", 4, 4, 4, 1}));
  // All sizes of a class, with their quartiles; what the probe does not have stays.
  DeviceProfile wanted = Base().profile;
  const auto times = [](MeasuredTime& time, double factor) {
    time.median *= factor, time.low *= factor, time.high *= factor;
  };
  for (size_t i = 0; i < wanted.compute.size(); ++i) times(wanted.compute[i].seconds, i < 2 ? 2 : i == 2 ? 3 : 0.5);
  for (MeasuredLaunch& point : wanted.launch) times(point.seconds, 4);
  wanted.driver = "2", wanted.libraries = "of the probe", wanted.tool = "this one", wanted.hosts = "1 host";
  wanted.date = "2026-11-30", wanted.scaled_from = "base.json of 2026-11-26", wanted.scaled_by = scaled->scaled_by;
  EXPECT_EQ(*scaled, wanted);
  const absl::StatusOr<DeviceProfile> read = ReadProfile(WriteProfile(*scaled));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *scaled);
}

TEST(ScaleProfile, TakesUsesBetweenTwoSizesWhereNoneHasItsSize) {
  DeviceProfile probe = Probe();
  // 1 TFLOP/s at both sizes of the base, and so between them.
  probe.compute[0] = Use(OpKind::kLinear, 1e10, 1e7, 1.5e-2);
  EXPECT_NEAR(FactorsOf(*Scaled(Base(), probe))["products"], 1.5, 1e-9);
  probe.compute.push_back(Use(OpKind::kLinear, 1e11, 1e8, 0.3));
  EXPECT_DOUBLE_EQ(FactorsOf(*Scaled(Base(), probe))["products"], 3);
  // Beyond them nothing is known, and of another precision neither.
  probe.compute.push_back(Use(OpKind::kLinear, 1e12, 1e9, 100));
  probe.compute.push_back(Use(OpKind::kLinear, 1e9, 1e6, 100));
  probe.compute.back().dtype = DType::kFp32;
  EXPECT_DOUBLE_EQ(FactorsOf(*Scaled(Base(), probe))["products"], 3);
}

// Of 1 ms, 100 ms and 2 ms, with the factors 2, 1.1 and 4, the one of 100 ms has most of the weight.
TEST(ScaleProfile, WeighsUsesByTheirTime) {
  ProbedBase base = Base();
  base.profile.compute.push_back(Use(OpKind::kExperts, 1e9, 1e6, 2e-3));
  DeviceProfile probe = Probe();
  probe.compute.push_back(Use(OpKind::kLinear, 1e11, 1e8, 0.11));
  probe.compute.push_back(Use(OpKind::kExperts, 1e9, 1e6, 8e-3));
  const absl::StatusOr<DeviceProfile> scaled = Scaled(base, probe);
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_DOUBLE_EQ(scaled->scaled_by[0].factor, (2e-3 + 0.11 + 8e-3) / (1e-3 + 0.1 + 2e-3));
  EXPECT_DOUBLE_EQ(scaled->scaled_by[0].low, 1.1);
  EXPECT_DOUBLE_EQ(scaled->scaled_by[0].high, 1.1);
  EXPECT_EQ(scaled->scaled_by[0].count, 3);
}

// One large product is half as slow again, and many small ones, which are more together, are not slower. The median is
// 1 then, and what all take is 1.2 times as much.
TEST(ScaleProfile, WhatAllUsesTakeCountsWhereTheirFactorsHaveTwoHumps) {
  ProbedBase base = Base();
  DeviceProfile probe = Probe();
  base.profile.compute = {Base().profile.compute[2], Base().profile.compute[3], Use(OpKind::kLinear, 1e11, 1e8, 0.04)};
  probe.compute[0] = Use(OpKind::kLinear, 1e11, 1e8, 0.06);
  for (int i = 1; i <= 6; ++i) {
    base.profile.compute.push_back(Use(OpKind::kLinear, i * 1e9, i * 1e6, 0.01));
    probe.compute.push_back(Use(OpKind::kLinear, i * 1e9, i * 1e6, 0.01));
  }
  const absl::StatusOr<DeviceProfile> scaled = Scaled(base, probe);
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  const ScaledUses& products = scaled->scaled_by[0];
  EXPECT_DOUBLE_EQ(products.factor, 1.2);
  EXPECT_DOUBLE_EQ(products.low, 1);
  EXPECT_DOUBLE_EQ(products.high, 1.5);
  // What the scaled profile says for the uses of the probe is what they took, in all.
  double says = 0, took = 0;
  for (const MeasuredCompute& point : scaled->compute) says += point.kind == OpKind::kLinear ? point.seconds.median : 0;
  for (const MeasuredCompute& point : probe.compute) took += point.kind == OpKind::kLinear ? point.seconds.median : 0;
  EXPECT_NEAR(says, took, 1e-12);
}

// The factor of all may lie outside the quartiles of single uses, and the file can be read again.
TEST(ScaleProfile, AFewUsesCanTakeTheFactorBeyondTheQuartiles) {
  ProbedBase base = Base();
  DeviceProfile probe = Probe();
  for (int i = 1; i <= 9; ++i) {
    base.profile.compute.push_back(Use(OpKind::kExperts, i * 1e9, i * 1e6, 1e-3));
    probe.compute.push_back(Use(OpKind::kExperts, i * 1e9, i * 1e6, 1e-3));
  }
  probe.compute[0].seconds = Took(0.011);
  const absl::StatusOr<DeviceProfile> scaled = Scaled(base, probe);
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_DOUBLE_EQ(scaled->scaled_by[0].factor, 2);
  EXPECT_DOUBLE_EQ(scaled->scaled_by[0].high, 1);
  const absl::StatusOr<DeviceProfile> read = ReadProfile(WriteProfile(*scaled));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, *scaled);
}

// Launches count as what the host needs for them.
TEST(ScaleProfile, LaunchesWeighTheirTime) {
  DeviceProfile probe = Probe();
  probe.launch.push_back({OpKind::kLinear, Took(8e-6)});
  EXPECT_DOUBLE_EQ(FactorsOf(*Scaled(Base(), probe))["launches"], (8.0 + 8.0) / (2 + 4));
}

TEST(ScaleProfile, CommunicationsScaleIfTheProbeHasSome) {
  DeviceProfile probe = Probe();
  probe.communication = {{OpKind::kAllReduce, 1e6, 2, 2, 1, Took(3e-3)}};
  const absl::StatusOr<DeviceProfile> scaled = Scaled(Base(), probe);
  ASSERT_TRUE(scaled.ok()) << scaled.status();
  EXPECT_DOUBLE_EQ(FactorsOf(*scaled)["communications"], 3);
  EXPECT_DOUBLE_EQ(scaled->communication[0].seconds.median, 3e-3);
}

// CPU ranks share their node, so another number of them tells nothing.
TEST(ScaleProfile, CpuRanksAreComparedWithAsMany) {
  ProbedBase base = Base();
  DeviceProfile probe = Probe();
  base.profile.gpu = probe.gpu = "none";
  for (MeasuredCompute& point : probe.compute) point.ranks = 2;
  for (MeasuredLaunch& point : probe.launch) point.ranks = 2;
  EXPECT_THAT(Scaled(base, probe).status().message(), HasSubstr("nothing tells how products of base.json scale"));
  for (MeasuredCompute& point : base.profile.compute) point.ranks = 2;
  for (MeasuredLaunch& point : base.profile.launch) point.ranks = 2;
  EXPECT_TRUE(Scaled(base, probe).ok());
}

TEST(ScaleProfile, RefusesWhatAProbeCannotTell) {
  const auto refusal = [](const ProbedBase& base, const DeviceProfile& probe) {
    return std::string(Scaled(base, probe).status().message());
  };
  DeviceProfile probe = Probe();
  probe.compute.erase(probe.compute.begin() + 1);
  EXPECT_THAT(refusal(Base(), probe), HasSubstr("nothing tells how attention of base.json scale"));
  probe = Probe(), probe.launch.clear();
  EXPECT_THAT(refusal(Base(), probe), HasSubstr("nothing tells how launches of base.json scale"));
  probe = Probe(), probe.gpu = "none";
  EXPECT_THAT(refusal(Base(), probe),
              HasSubstr("base.json was measured on h200_sxm, and the recipe runs on CPU ranks"));
  probe = Probe(), probe.device = "NVIDIA H200 NVL";
  EXPECT_THAT(refusal(Base(), probe),
              HasSubstr("base.json was measured on NVIDIA H200, and this device is NVIDIA H200 NVL"));
  ProbedBase scaled = Base();
  scaled.profile.scaled_from = "another.json of 2026-11-20";
  EXPECT_THAT(refusal(scaled, Probe()), HasSubstr("base.json is scaled itself, from another.json of 2026-11-20"));
}

}  // namespace
}  // namespace planwright
