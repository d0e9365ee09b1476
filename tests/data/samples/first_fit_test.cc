#include "planner/data/samples/first_fit.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace planwright {
namespace {

TEST(FirstFit, TakesTheFirstSampleWithRoom) {
  FirstFit fit(10);
  fit.Begin(5);
  std::vector<int64_t> samples;
  for (int64_t tokens : {6, 5, 4, 10, 5}) samples.push_back(fit.Place(tokens));
  EXPECT_EQ(samples, (std::vector<int64_t>{0, 1, 0, 2, 1}));
  fit.Begin(1);
  EXPECT_EQ(fit.Place(1), 0);
}

TEST(FirstFit, AgreesWithALookAtEverySample) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    const int64_t room = 1 + static_cast<int64_t>(random() % 50), items = 1 + static_cast<int64_t>(random() % 300);
    FirstFit fit(room);
    fit.Begin(items);
    std::vector<int64_t> rooms;
    for (int64_t i = 0; i < items; ++i) {
      const int64_t tokens = 1 + static_cast<int64_t>(random() % room);
      int64_t sample = 0;
      while (sample < static_cast<int64_t>(rooms.size()) && rooms[sample] < tokens) ++sample;
      if (sample == static_cast<int64_t>(rooms.size())) rooms.push_back(room);
      rooms[sample] -= tokens;
      ASSERT_EQ(fit.Place(tokens), sample);
    }
  }
}

}  // namespace
}  // namespace planwright
