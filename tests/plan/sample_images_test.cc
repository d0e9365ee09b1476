#include "planner/plan/sample_images.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

DataPlan Data(DataKind kind, std::vector<std::vector<int64_t>> grids) {
  DataPlan data;
  data.kind = kind;
  data.image_grids = std::move(grids);
  return data;
}

TEST(OneImageSize, IsThatOfMockDataOfOneSize) {
  EXPECT_TRUE(OneImageSize(Data(DataKind::kMock, {{64, 96}})));
  EXPECT_TRUE(OneImageSize(Data(DataKind::kMock, {{64, 96}, {64, 96}})));
  EXPECT_FALSE(OneImageSize(Data(DataKind::kMock, {{64, 96}, {96, 64}})));  // as many patches, but not the same image
  EXPECT_FALSE(OneImageSize(Data(DataKind::kMock, {{4, 6}, {2, 4}, {4, 6}})));
  EXPECT_FALSE(OneImageSize(Data(DataKind::kMock, {})));
}

TEST(OneImageSize, IsUnknownOfFiles) {
  EXPECT_FALSE(OneImageSize(Data(DataKind::kSources, {{64, 96}})));
  EXPECT_FALSE(OneImageSize(Data(DataKind::kRecorded, {})));
  EXPECT_FALSE(OneImageSize(DataPlan{}));
}

// The images of a sample are at most its tokens, shared by images of the fewest patches. Between 1 and 2 times
// min_patches, round_half_even makes smaller ones, and with equal limits it does not grow small images at all.
TEST(ImagesOfSample, OfShardsAreAsManyAsTheSmallestImagesThatFit) {
  const EncoderData encoder{"encoder", 256, 16, 2, 2048};
  const auto most = [&](const std::string& grid, int64_t min_patches, int64_t max_patches) {
    DataPlan data = Data(DataKind::kSources, {});
    data.grid = grid;
    data.min_patches = min_patches;
    data.max_patches = max_patches;
    return ImagesOfSample(data, encoder, 8192).max_images;
  };
  EXPECT_EQ(most("ceil", 1024, 13312), 32);
  EXPECT_EQ(most("round_half_even", 1024, 13312), 32);
  EXPECT_EQ(most("round_half_even", 1024, 1280), 51);  // of 640 patches
  EXPECT_EQ(most("round_half_even", 1024, 1024), 8192);
}

}  // namespace
}  // namespace planwright
