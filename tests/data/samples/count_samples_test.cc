// Counts of an index that an evaluation set needs.
#include "planner/data/samples/count_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "planner/data/samples/mixture.h"

namespace planwright {
namespace {

TEST(SamplesOnce, AreThoseBeforeTheFirstThatComesAgain) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    DataPlan data;
    std::vector<int64_t> samples, weights;
    for (uint64_t i = 0; i < 1 + random() % 5; ++i) {
      weights.push_back(1 + static_cast<int64_t>(random() % 40));
      samples.push_back(1 + static_cast<int64_t>(random() % 200));
      data.sources.push_back({.name = "s" + std::to_string(i), .weight = weights.back()});
    }
    const Mixture mixture(weights);
    int64_t n = 0;
    std::vector<int64_t> read(samples.size());
    for (Mixture::Turn turn = mixture.At(0); read[turn.source] < samples[turn.source]; turn = mixture.At(++n))
      ++read[turn.source];
    EXPECT_EQ(SamplesOnce(data, samples), n) << testing::PrintToString(weights) << testing::PrintToString(samples);
  }
}

TEST(SamplesOnce, AreAllOfOneSource) {
  DataPlan data;
  data.sources = {{.name = "a", .weight = 3}};
  EXPECT_EQ(SamplesOnce(data, {1}), 1);
  EXPECT_EQ(SamplesOnce(data, {123'456'789}), 123'456'789);
}

// Of sources with weights as their samples nothing is left over.
TEST(SamplesOnce, AreAllOfSourcesWithFittingWeights) {
  DataPlan data;
  data.sources = {{.name = "a", .weight = 1}, {.name = "b", .weight = 7}, {.name = "c", .weight = 992}};
  EXPECT_EQ(SamplesOnce(data, {1000, 7000, 992000}), 1'000'000);
}

}  // namespace
}  // namespace planwright
