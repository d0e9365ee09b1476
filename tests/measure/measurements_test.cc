// Points of a profile: medians and quartiles of repetitions, and several parts as one.
#include "planner/measure/measurements.h"

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
  for (double seconds : {3.0, 1.0, 2.0}) measurements.Add(small, "a", seconds);
  measurements.Add(large, "b", 9);
  measurements.Add({OpKind::kAllReduce, 64, 4, 2, 2}, 0.5);
  measurements.AddLaunch(OpKind::kLinear, 0.25);
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
  DeviceProfile profile;
  measurements.Fill(profile);
  EXPECT_TRUE(profile.compute.empty() && profile.communication.empty() && profile.launch.empty());
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
