#include "planner/data/samples/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace planwright {
namespace {

// In exact integers: |count_i T - w_i n| < T for every n, and the numbers of a source count up without a gap.
void ExpectFair(const std::vector<int64_t>& weights, int64_t samples, int64_t first = 0) {
  const Mixture mixture(weights);
  const int64_t period = std::accumulate(weights.begin(), weights.end(), int64_t{0});
  std::vector<int64_t> counts(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) counts[i] = first / period * weights[i];
  ASSERT_EQ(first % period, 0);
  for (int64_t n = first; n < first + samples; ++n) {
    const Mixture::Turn turn = mixture.At(n);
    ASSERT_EQ(mixture.CountsOf(n), counts) << "sample " << n;
    ASSERT_EQ(turn.number, counts[turn.source]++) << "sample " << n;
    for (size_t i = 0; i < weights.size(); ++i) {
      ASSERT_LT(std::abs(counts[i] * period - weights[i] * (n + 1)), period)
          << "source " << i << " of " << weights.size() << " after " << n + 1 << " samples";
    }
  }
}

TEST(Mixture, EverySourceHasItsShareOfTheFirstSamplesLessThanOneOff) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> weights(2 + random() % 11);
    // Sizes from 1 to 2048, each power of two as often: extreme ratios are as frequent as equal weights.
    for (int64_t& weight : weights) weight = 1 + static_cast<int64_t>(random() % (uint64_t{1} << random() % 12));
    const int64_t period = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    ASSERT_NO_FATAL_FAILURE(ExpectFair(weights, 3 * period)) << testing::PrintToString(weights);
  }
}

TEST(Mixture, ExtremeWeights) {
  ExpectFair({1, 999'999}, 1'000'000);
  ExpectFair({999'998, 1, 1}, 1'000'000, 1'000'000);
  ExpectFair({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 36);
  ExpectFair(std::vector<int64_t>(1000, 1), 2000);  // more sources than a block of counts has samples
  ExpectFair({7}, 21);
}

TEST(Mixture, TheFirstSamplesOfAnExample) {
  // captions 6, text 1, code 3 of 10: the example of docs/training/data.md.
  const Mixture mixture({6, 1, 3});
  std::vector<int64_t> sources, numbers;
  for (int64_t n = 0; n < 12; ++n) {
    sources.push_back(mixture.At(n).source);
    numbers.push_back(mixture.At(n).number);
  }
  EXPECT_EQ(sources, (std::vector<int64_t>{0, 2, 0, 0, 2, 0, 1, 0, 2, 0, 0, 2}));
  EXPECT_EQ(numbers, (std::vector<int64_t>{0, 0, 1, 2, 1, 3, 0, 4, 2, 5, 6, 3}));
}

TEST(Mixture, FarSamplesAreLookedUpInTheSameTable) {
  const std::vector<int64_t> weights = {6, 1, 3};
  const Mixture mixture(weights);
  const int64_t periods = int64_t{1} << 40;
  for (int64_t n = 0; n < 10; ++n) {
    const Mixture::Turn near = mixture.At(n), far = mixture.At(periods * 10 + n);
    EXPECT_EQ(far.source, near.source);
    EXPECT_EQ(far.number, near.number + periods * weights[near.source]);
  }
}

}  // namespace
}  // namespace planwright
