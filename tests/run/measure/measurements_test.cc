// Points of a profile: medians and quartiles of repetitions, and several parts as one.
#include "planner/run/measure/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

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

// In steps an all_reduce within a node takes 4 times what it takes alone at 100 bytes, and twice at 1,600.
DeviceProfile ScaledBySizes(const std::vector<CommunicationUse>& alone) {
  Measurements measurements;
  measurements.Add({OpKind::kAllReduce, 100, 2, 2, 1}, 4);
  measurements.Add({OpKind::kAllReduce, 1600, 2, 2, 1}, 32);
  measurements.EndStep();
  for (double bytes : {100.0, 1600.0}) measurements.AddAlone({OpKind::kAllReduce, bytes, 2, 2, 1}, bytes / 100);
  for (const CommunicationUse& use : alone) measurements.AddAlone(use, use.bytes / 100);
  DeviceProfile profile;
  measurements.Fill(profile);
  std::erase_if(profile.communication, [](const MeasuredCommunication& point) { return point.scaled == 0; });
  return profile;
}

TEST(Measurements, FactorsOfTheSameGroupLieOnALineBetweenSizes) {
  std::vector<CommunicationUse> alone;
  for (double bytes : {25.0, 200.0, 400.0, 6400.0}) alone.push_back({OpKind::kAllReduce, bytes, 2, 2, 1});
  std::map<double, std::pair<double, double>> scaled;  // by bytes: the factor, and what it makes of the time
  for (const MeasuredCommunication& point : ScaledBySizes(alone).communication)
    scaled[point.bytes] = {point.scaled, point.seconds.median};
  ASSERT_EQ(scaled.size(), 4U);
  const std::map<double, double> factors = {{25, 4}, {200, 3.5}, {400, 3}, {6400, 2}};
  for (const auto& [bytes, factor] : factors) {
    EXPECT_NEAR(scaled[bytes].first, factor, 1e-9) << bytes;
    EXPECT_NEAR(scaled[bytes].second, factor * bytes / 100, 1e-9) << bytes;
  }
}

TEST(Measurements, FactorsOfOtherGroupsAreThoseOfAboutTheSize) {
  // Within a node, as what was measured, and across nodes, of which nothing was.
  for (const auto& [per_node, nodes] : {std::pair(4, 1), std::pair(1, 4)}) {
    std::vector<CommunicationUse> alone;
    for (double bytes : {200.0, 3200.0, 1e6}) alone.push_back({OpKind::kAllGather, bytes, 4, per_node, nodes});
    std::vector<double> factors;
    for (const MeasuredCommunication& point : ScaledBySizes(alone).communication) factors.push_back(point.scaled);
    EXPECT_THAT(factors, ElementsAre(4, 2, 3)) << nodes << " nodes: the last one is far from both";
  }
}

// A group across nodes has the factors of such groups, though one within a node has its size.
TEST(Measurements, FactorsAreOfGroupsAcrossNodesOrWithinThem) {
  Measurements measurements;
  measurements.Add({OpKind::kAllReduce, 100, 2, 2, 1}, 4);
  measurements.Add({OpKind::kAllReduce, 800, 2, 1, 2}, 8);
  measurements.EndStep();
  measurements.AddAlone({OpKind::kAllReduce, 100, 2, 2, 1}, 1);
  measurements.AddAlone({OpKind::kAllReduce, 800, 2, 1, 2}, 8);
  measurements.AddAlone({OpKind::kAllGather, 100, 4, 2, 2}, 1);
  measurements.AddAlone({OpKind::kAllGather, 100, 4, 4, 1}, 1);
  DeviceProfile profile;
  measurements.Fill(profile);
  std::map<int, double> factors;  // by nodes
  for (const MeasuredCommunication& point : profile.communication) {
    if (point.kind == OpKind::kAllGather) factors[point.nodes] = point.scaled;
  }
  EXPECT_EQ(factors, (std::map<int, double>{{1, 4}, {2, 1}}));
}

// What steps do not tell of rows that nobody counted, other kinds do not tell either. But counts, which are messages
// between the same ranks, tell what a message takes longer in a step, whatever its size.
TEST(Measurements, RowsThatNobodyCountedTakeLongerByWhatCountsDo) {
  std::map<OpKind, double> factors;
  for (const MeasuredCommunication& point :
       ScaledBySizes({{OpKind::kAllToAllV, 100, 2, 2, 1}, {OpKind::kAllGatherV, 100, 2, 2, 1}}).communication)
    factors[point.kind] = point.scaled;
  EXPECT_EQ(factors, (std::map<OpKind, double>{{OpKind::kAllToAllV, 1}, {OpKind::kAllGatherV, 1}}));

  // Counts take 3 s longer over two ranks of a node; over those of two nodes there are none.
  Measurements counted;
  counted.Add({OpKind::kAllToAll, 64, 2, 2, 1}, 5);
  counted.EndStep();
  counted.AddAlone({OpKind::kAllToAll, 64, 2, 2, 1}, 2);
  for (double bytes : {600.0, 6000.0}) counted.AddAlone({OpKind::kAllToAllV, bytes, 2, 2, 1}, bytes / 100);
  counted.AddAlone({OpKind::kAllToAllV, 600, 2, 1, 2}, 6);
  DeviceProfile longer;
  counted.Fill(longer);
  EXPECT_THAT(longer.communication,
              ElementsAre(MeasuredCommunication{OpKind::kAllToAll, 64, 2, 2, 1, {5, 5, 5, 1}, 0},
                          MeasuredCommunication{OpKind::kAllToAllV, 600, 2, 1, 2, {6, 6, 6, 1}, 1},
                          MeasuredCommunication{OpKind::kAllToAllV, 600, 2, 2, 1, {9, 9, 9, 1}, 1.5},
                          MeasuredCommunication{OpKind::kAllToAllV, 6000, 2, 2, 1, {63, 63, 63, 1}, 1.05}));

  // Where steps tell, as on GPUs, they are.
  Measurements measurements;
  measurements.Add({OpKind::kAllToAllV, 100, 2, 2, 1}, 3);
  measurements.EndStep();
  for (double bytes : {100.0, 200.0}) measurements.AddAlone({OpKind::kAllToAllV, bytes, 2, 2, 1}, bytes / 100);
  DeviceProfile profile;
  measurements.Fill(profile);
  EXPECT_THAT(profile.communication,
              ElementsAre(MeasuredCommunication{OpKind::kAllToAllV, 100, 2, 2, 1, {3, 3, 3, 1}, 0},
                          MeasuredCommunication{OpKind::kAllToAllV, 200, 2, 2, 1, {6, 6, 6, 1}, 3}));
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

// Of rows that nobody counted, those stay whose counts were in steps, over each group.
TEST(Merged, PrefersRowsOfWhichCountsTold) {
  const MeasuredTime took{2, 2, 2, 1};
  const MeasuredCommunication told{OpKind::kAllToAllV, 64, 2, 2, 1, took, 1.5},
      untold{OpKind::kAllToAllV, 128, 2, 2, 1, took, 1}, elsewhere{OpKind::kAllToAllV, 64, 2, 1, 2, took, 1},
      other{OpKind::kAllReduce, 64, 2, 2, 1, took, 1};
  const DeviceProfile a{.gpu = "none", .communication = {told}},
      b{.gpu = "none", .communication = {untold, elsewhere, other}};
  for (const DeviceProfile& merged : {Merged({a, b}), Merged({b, a})})
    EXPECT_THAT(merged.communication, ::testing::UnorderedElementsAre(told, elsewhere, other));
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
