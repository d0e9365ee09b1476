#include "planner/plan/sample_images.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

DataPlan Data(const std::string& kind, std::vector<std::vector<int64_t>> grids) {
  DataPlan data;
  data.kind = kind;
  data.image_grids = std::move(grids);
  return data;
}

TEST(OneImageSize, IsThatOfMockDataOfOneSize) {
  EXPECT_TRUE(OneImageSize(Data("mock", {{64, 96}})));
  EXPECT_TRUE(OneImageSize(Data("mock", {{64, 96}, {64, 96}})));
  EXPECT_FALSE(OneImageSize(Data("mock", {{64, 96}, {96, 64}})));  // as many patches, but not the same image
  EXPECT_FALSE(OneImageSize(Data("mock", {{4, 6}, {2, 4}, {4, 6}})));
  EXPECT_FALSE(OneImageSize(Data("mock", {})));
}

TEST(OneImageSize, IsUnknownOfFiles) {
  EXPECT_FALSE(OneImageSize(Data("webdataset", {{64, 96}})));
  EXPECT_FALSE(OneImageSize(Data("recorded", {})));
  EXPECT_FALSE(OneImageSize(DataPlan{}));
}

}  // namespace
}  // namespace planwright
