#include "planner/plan/image_bands.h"

#include <gtest/gtest.h>

#include <random>

namespace planwright {
namespace {

using Grids = std::vector<std::array<int64_t, 2>>;

std::vector<std::vector<int64_t>> Numbers(const std::vector<std::vector<ImageRows>>& parts) {
  std::vector<std::vector<int64_t>> numbers;
  for (const std::vector<ImageRows>& part : parts) {
    numbers.emplace_back();
    for (const ImageRows& rows : part)
      numbers.back().insert(numbers.back().end(), {rows.image, rows.first, rows.count});
  }
  return numbers;
}

// The example of docs/layouts/sequence.md#encoder: one band here, three there.
TEST(DealBands, MeetsTheExampleOfThePage) {
  EXPECT_EQ(Numbers(DealBands({{4, 8}, {4, 4}}, 2, 2)),
            (std::vector<std::vector<int64_t>>{{0, 0, 2}, {0, 2, 2, 1, 0, 4}}));
}

TEST(DealBands, EdgesHaveEmptyParts) {
  EXPECT_EQ(Numbers(DealBands({}, 2, 3)), (std::vector<std::vector<int64_t>>{{}, {}, {}}));
  // One square: its middle is that of the lane, which belongs to the upper half.
  EXPECT_EQ(Numbers(DealBands({{2, 2}}, 2, 2)), (std::vector<std::vector<int64_t>>{{}, {0, 0, 2}}));
  EXPECT_EQ(Numbers(DealBands({{2, 2}}, 2, 3)), (std::vector<std::vector<int64_t>>{{}, {0, 0, 2}, {}}));
  EXPECT_EQ(Numbers(DealBands({{3, 5}, {1, 1}}, 2, 1)),
            (std::vector<std::vector<int64_t>>{{0, 0, 3, 1, 0, 1}}));  // one part has everything, whatever it is
}

TEST(DealBands, PartsAreTheLaneInOrderAndNearlyEqual) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const int64_t factor = 1 + random() % 3, cp = 2 + random() % 6;
    Grids grids(random() % 6);
    int64_t lane = 0, band = 0;
    for (auto& [rows, columns] : grids) {
      rows = factor * static_cast<int64_t>(1 + random() % 8), columns = factor * static_cast<int64_t>(1 + random() % 8);
      lane += rows * columns;
      band = std::max(band, factor * columns);
    }
    int64_t image = 0, row = 0;  // the next of the lane
    for (const std::vector<ImageRows>& part : DealBands(grids, factor, cp)) {
      int64_t patches = 0;
      for (const ImageRows& rows : part) {
        ASSERT_TRUE(rows.image == image && rows.first == row && rows.count > 0 && rows.count % factor == 0);
        patches += rows.count * grids[image][1];
        row += rows.count;
        if (row == grids[image][0]) ++image, row = 0;
      }
      EXPECT_LE(cp * std::abs(patches - lane / cp), cp * (band + 1));
    }
    EXPECT_TRUE(image == static_cast<int64_t>(grids.size()) && row == 0);
  }
}

}  // namespace
}  // namespace planwright
