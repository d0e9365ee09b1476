// The balanced order of a step: it is a permutation, the same whenever it is asked for, and makes the fullest lane of
// every layout less full.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "planner/plan/balanced_slots.h"

namespace planwright {
namespace {

using Draw = std::function<int64_t(std::mt19937&)>;

// Up to three images of three sizes, as mock data has them.
int64_t MockPatches(std::mt19937& random) {
  constexpr int64_t kGrids[] = {64 * 64, 64 * 96, 96 * 96};
  int64_t patches = 0;
  for (uint32_t images = random() % 4; images > 0; --images) patches += kGrids[random() % 3];
  return patches;
}

// Few samples have most of the patches.
int64_t SkewedPatches(std::mt19937& random) { return std::min<int64_t>(6400 / (1 + random() % 100), 1600); }

// What lane `lane` of `lanes` has of a step, when microbatches have `micro` slots (docs/training/data.md#lanes).
int64_t LaneWork(const std::vector<int64_t>& patches, const std::vector<int64_t>& slots, int64_t micro, int64_t lanes,
                 int64_t lane) {
  const int64_t share = micro / lanes, more = micro % lanes;
  const int64_t first = lane * share + std::min(lane, more), end = first + share + (lane < more ? 1 : 0);
  int64_t work = 0;
  for (size_t begin = 0; begin < slots.size(); begin += micro) {
    for (int64_t slot = first; slot < end; ++slot) work += patches[slots[begin + slot]];
  }
  return work;
}

// How much the fullest lane has beyond the mean, as a part of the mean; 0 is the best. Where one sample has more than
// the mean of a lane, no order can do better than to give it a lane alone: that part is not counted.
double Excess(const std::vector<int64_t>& patches, const std::vector<int64_t>& slots, int64_t micro, int64_t lanes) {
  int64_t fullest = 0;
  for (int64_t lane = 0; lane < lanes; ++lane)
    fullest = std::max(fullest, LaneWork(patches, slots, micro, lanes, lane));
  const auto total = static_cast<double>(std::accumulate(patches.begin(), patches.end(), int64_t{0}));
  if (total == 0) return 0;
  const double mean = total / static_cast<double>(lanes);
  const auto largest = static_cast<double>(*std::max_element(patches.begin(), patches.end()));
  return static_cast<double>(fullest) / std::max(mean, largest) - 1;
}

std::vector<int64_t> Numbered(size_t count) {
  std::vector<int64_t> slots(count);
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

struct Case {
  std::string name;
  Draw draw;
};

void PrintTo(const Case& item, std::ostream* out) { *out << item.name; }

class Balance : public testing::TestWithParam<Case> {
 protected:
  std::vector<int64_t> Patches(size_t count) {
    std::vector<int64_t> patches(count);
    for (int64_t& number : patches) number = GetParam().draw(random_);
    return patches;
  }
  std::mt19937 random_{20};
};

TEST_P(Balance, HasEverySampleOnceAndIsAlwaysTheSame) {
  for (size_t count = 0; count <= 70; ++count) {
    const std::vector<int64_t> patches = Patches(count);
    const std::vector<int64_t> slots = BalancedSlots(patches);
    std::vector<int64_t> sorted = slots;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted, Numbered(count));
    EXPECT_EQ(BalancedSlots(patches), slots);
  }
}

// All layouts with at least four samples a lane. Lanes with fewer are what their largest samples are. Of few samples a
// single layout may gain nothing, so those of the same number of lanes are added up.
TEST_P(Balance, HalvesTheExcessOfTheFullestLane) {
  double before = 0, after = 0;
  for (int64_t lanes : {2, 3, 4, 8}) {
    double numbered = 0, balanced = 0;
    for (int64_t samples : {8, 16, 24, 64, 96, 768}) {
      if (samples < 4 * lanes) continue;
      for (int step = 0; step < (samples < 100 ? 5 : 1); ++step) {
        const std::vector<int64_t> patches = Patches(samples), slots = BalancedSlots(patches);
        for (int64_t micro : {lanes, 2 * lanes, 4 * lanes, samples}) {
          if (samples % micro != 0) continue;
          numbered += Excess(patches, Numbered(samples), micro, lanes);
          balanced += Excess(patches, slots, micro, lanes);
        }
      }
    }
    EXPECT_LT(balanced, numbered) << lanes << " lanes";
    before += numbered;
    after += balanced;
  }
  EXPECT_LT(after, before / 2) << before << " -> " << after;
  RecordProperty("excess", std::to_string(before) + " -> " + std::to_string(after));
}

// The slots of every half, quarter, ... have nearly equally much: no more apart than one sample can be.
TEST_P(Balance, HasHalvesOfEqualWork) {
  const std::vector<int64_t> patches = Patches(256), slots = BalancedSlots(patches);
  const int64_t largest = *std::max_element(patches.begin(), patches.end());
  for (int64_t size = 256; size >= 2; size /= 2) {
    for (int64_t begin = 0; begin < 256; begin += size) {
      int64_t halves[2] = {0, 0};
      for (int64_t i = 0; i < size; ++i) halves[i / (size / 2)] += patches[slots[begin + i]];
      EXPECT_LE(std::abs(halves[0] - halves[1]), largest) << begin << " " << size;
    }
  }
}

TEST(EqualSamples, AreBalancedInAnyOrder) {
  const std::vector<int64_t> patches(24, 7);
  for (int64_t lanes : {2, 3, 4}) EXPECT_EQ(Excess(patches, BalancedSlots(patches), 12, lanes), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Patches, Balance,
    testing::Values(Case{"Mock", MockPatches}, Case{"Skewed", SkewedPatches},
                    Case{"Uniform", [](std::mt19937& random) { return static_cast<int64_t>(random() % 1000); }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright
