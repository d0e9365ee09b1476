// Points of a profile: medians and quartiles of repetitions, and several parts as one.
#include "planner/run/measure/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::ElementsAre;

TEST(TimeOf, IsTheMedianWithItsQuartiles) {
  EXPECT_EQ(TimeOf({5, 1, 4, 2, 3}), (MeasuredTime{3, 2, 4, 5}));
  EXPECT_EQ(TimeOf({4, 1}), (MeasuredTime{2.5, 1.75, 3.25, 2}));
  EXPECT_EQ(TimeOf({7}), (MeasuredTime{7, 7, 7, 1}));
}

TEST(Measurements, GathersRepetitionsOfAUse) {
  Measurements measurements;
  const ComputeUse small{OpKind::kLinear, 100, 10, DType::kFp32}, large{OpKind::kLinear, 200, 10, DType::kFp32};
  // Three steps; in the second one it ran twice.
  for (const std::vector<double>& step : {std::vector<double>{3}, {0.5, 1.5}, {2}}) {
    for (double seconds : step) measurements.Add(small, "a", seconds);
    measurements.EndStep();
  }
  measurements.Add(large, "b", 9);
  measurements.Add({OpKind::kAllReduce, 64, 4, 2, 2}, 0.5);
  measurements.AddLaunch(OpKind::kLinear, 0.25);
  measurements.EndStep();
  DeviceProfile profile;
  measurements.Fill(profile);
  EXPECT_THAT(profile.compute,
              ElementsAre(MeasuredCompute{OpKind::kLinear, DType::kFp32, 100, 10, "a", {2, 1.5, 2.5, 3}},
                          MeasuredCompute{OpKind::kLinear, DType::kFp32, 200, 10, "b", {9, 9, 9, 1}}));
  EXPECT_THAT(profile.communication,
              ElementsAre(MeasuredCommunication{OpKind::kAllReduce, 64, 4, 2, 2, {0.5, 0.5, 0.5, 1}}));
  EXPECT_THAT(profile.launch, ElementsAre(MeasuredLaunch{OpKind::kLinear, {0.25, 0.25, 0.25, 1}}));
}

TEST(Measurements, LeavesOutWhatHasNoRate) {
  Measurements measurements;
  measurements.Add({OpKind::kLinear, 0, 0}, "", 1);
  measurements.Add({OpKind::kLinear, 5, 5}, "", 0);
  measurements.Add({OpKind::kAllReduce, 64, 1, 1, 1}, 1);
  measurements.Add({OpKind::kExchange, 0, 2, 2, 1}, 1);
  measurements.AddLaunch(OpKind::kLinear, 0);
  measurements.EndStep();
  DeviceProfile profile;
  measurements.Fill(profile);
  EXPECT_TRUE(profile.compute.empty() && profile.communication.empty() && profile.launch.empty());
}

// While a product runs beside a communication that was launched before it, it does what is missing of its time alone.
TEST(Measurements, FindsHowFastAKindGoesOnBesideTheOtherSort) {
  Measurements measurements;
  const ComputeUse product{OpKind::kLinear, 100, 10, DType::kFp32};
  for (int i = 0; i < 3; ++i) {
    measurements.Add(product, "", 4);
    measurements.EndStep();
  }
  // 3 s beside a communication and 3 without: in the former it did 1 s of its work.
  measurements.Add(product, "", 6, {.earlier = 3, .any = 3});
  // What was launched after it slows nothing down in the simulation, and its own time is not undisturbed.
  measurements.Add(product, "", 9, {.earlier = 0, .any = 5});
  // Beside it for a moment: undisturbed.
  measurements.Add(product, "", 4, {.earlier = 0.01, .any = 0.01});
  // Never undisturbed: its time counts as it is.
  measurements.Add({OpKind::kAllGather, 64, 2, 2, 1}, 5, {.earlier = 4, .any = 4});
  measurements.EndStep();
  DeviceProfile profile;
  measurements.Fill(profile);
  EXPECT_THAT(profile.compute, ElementsAre(MeasuredCompute{OpKind::kLinear, DType::kFp32, 100, 10, "", {4, 4, 4, 4}}));
  ASSERT_EQ(profile.beside.size(), 1U);
  EXPECT_EQ(profile.beside[0].kind, OpKind::kLinear);
  EXPECT_NEAR(profile.beside[0].speed.median, 1.0 / 3, 1e-9);
  EXPECT_THAT(profile.communication, ElementsAre(MeasuredCommunication{OpKind::kAllGather, 64, 2, 2, 1, {5, 5, 5, 1}}));
}

// In steps an all_reduce takes twice what it takes alone.
TEST(Measurements, ScalesWhatWasTimedAlone) {
  Measurements measurements;
  measurements.Add({OpKind::kAllReduce, 100, 2, 2, 1}, 4);
  measurements.EndStep();
  for (double bytes : {100.0, 400.0}) measurements.AddAlone({OpKind::kAllReduce, bytes, 2, 2, 1}, bytes / 50);
  measurements.AddAlone({OpKind::kAllGather, 100, 2, 2, 1}, 3);
  measurements.AddAlone({OpKind::kAllReduce, 100, 2, 1, 2}, 5);
  DeviceProfile profile;
  measurements.Fill(profile);
  EXPECT_THAT(profile.communication,
              ElementsAre(MeasuredCommunication{OpKind::kAllReduce, 100, 2, 1, 2, {10, 10, 10, 1}, 2},
                          MeasuredCommunication{OpKind::kAllReduce, 100, 2, 2, 1, {4, 4, 4, 1}, 0},
                          MeasuredCommunication{OpKind::kAllReduce, 400, 2, 2, 1, {16, 16, 16, 1}, 2},
                          MeasuredCommunication{OpKind::kAllGather, 100, 2, 2, 1, {6, 6, 6, 1}, 2}));
}

TEST(Merged, KeepsNumbersOfRanksApartAndPrefersTimesOfSteps) {
  const MeasuredTime took{2, 2, 2, 1}, alone{3, 3, 3, 1};
  const DeviceProfile a{.gpu = "none",
                        .compute = {{OpKind::kLinear, DType::kFp32, 1, 1, "", took, 1}},
                        .communication = {{OpKind::kAllReduce, 64, 2, 2, 1, alone, 1.5}},
                        .beside = {{OpKind::kLinear, {0.5, 0.5, 0.5, 1}}},
                        .skew = {{OpKind::kExperts, 2, {1.5, 1.5, 1.5, 1}}}};
  const DeviceProfile b{.gpu = "none",
                        .compute = {{OpKind::kLinear, DType::kFp32, 1, 1, "", alone, 2}},
                        .communication = {{OpKind::kAllReduce, 64, 2, 2, 1, took, 0}},
                        .beside = {{OpKind::kLinear, {0.7, 0.7, 0.7, 1}}},
                        .skew = {{OpKind::kExperts, 4, {3, 3, 3, 1}}}};
  for (const DeviceProfile& merged : {Merged({a, b}), Merged({b, a})}) {
    EXPECT_THAT(merged.compute, ElementsAre(a.compute[0], b.compute[0]));
    EXPECT_THAT(merged.communication, ElementsAre(b.communication[0]));
    ASSERT_EQ(merged.beside.size(), 1U);
    EXPECT_NEAR(merged.beside[0].speed.median, 0.6, 1e-9);
    EXPECT_THAT(merged.skew, ElementsAre(a.skew[0], b.skew[0]));
  }
}

TEST(Merged, WeighsWhatSeveralPartsMeasured) {
  const auto point = [](double flops, MeasuredTime seconds) {
    return MeasuredCompute{OpKind::kLinear, DType::kFp32, flops, 1, "", seconds};
  };
  DeviceProfile a{.gpu = "none", .date = "2026-11-23", .compute = {point(1, {4, 3, 5, 3}), point(9, {1, 1, 1, 1})}};
  DeviceProfile b{.gpu = "none", .date = "2026-11-24", .compute = {point(1, {8, 7, 9, 1}), point(2, {6, 6, 6, 2})}};
  const DeviceProfile merged = Merged({a, b});
  EXPECT_EQ(merged.date, "2026-11-24");
  EXPECT_THAT(merged.compute, ElementsAre(point(1, {5, 3, 9, 4}), point(2, {6, 6, 6, 2}), point(9, {1, 1, 1, 1})));
  EXPECT_EQ(Merged({b, a}), merged);
}

}  // namespace
}  // namespace planwright
