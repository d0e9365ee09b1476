#include "planner/data/samples/token_positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using Position = std::array<int64_t, 3>;

constexpr int64_t kText = 1, kImage = 7, kOther = 8;

DataPlan DataOf(std::vector<EncoderData> encoders) {
  DataPlan data;
  data.encoders = std::move(encoders);
  return data;
}

const EncoderData kEye = {.module = "eye", .token = kImage, .patch = 4, .pixel_shuffle = 2, .max_image = 64};

Sample SampleOf(std::vector<int64_t> tokens, std::vector<std::vector<Image>> images) {
  Sample sample;
  sample.tokens = std::move(tokens);
  sample.images = std::move(images);
  return sample;
}

TEST(TokenPositions, TextCounts) {
  EXPECT_THAT(TokenPositions(DataOf({}), SampleOf({kText, kImage, kText}, {})),
              ElementsAre(Position{0, 0, 0}, Position{1, 1, 1}, Position{2, 2, 2}));
}

// 4 x 6 patches are 2 x 3 image tokens, so the text goes on 3 later.
TEST(TokenPositions, ImageTokensHaveRowsAndColumns) {
  const Sample sample = SampleOf({kText, kText, kImage, kImage, kImage, kImage, kImage, kImage, kText, kText},
                                 {{{.rows = 4, .cols = 6, .patches = {}}}});
  EXPECT_THAT(
      TokenPositions(DataOf({kEye}), sample),
      ElementsAre(Position{0, 0, 0}, Position{1, 1, 1}, Position{2, 2, 2}, Position{2, 2, 3}, Position{2, 2, 4},
                  Position{2, 3, 2}, Position{2, 3, 3}, Position{2, 3, 4}, Position{5, 5, 5}, Position{6, 6, 6}));
}

// One image behind the other begins where the text would go on.
TEST(TokenPositions, ImagesFollowEachOther) {
  const Sample sample = SampleOf({kImage, kImage, kImage, kText},
                                 {{{.rows = 4, .cols = 2, .patches = {}}, {.rows = 2, .cols = 2, .patches = {}}}});
  EXPECT_THAT(TokenPositions(DataOf({kEye}), sample),
              ElementsAre(Position{0, 0, 0}, Position{0, 1, 0}, Position{2, 2, 2}, Position{3, 3, 3}));
}

TEST(TokenPositions, BeginAnewInEachDocument) {
  Sample sample = SampleOf({kText, kImage, kText, kText, kImage, kText, kText},
                           {{{.rows = 2, .cols = 2, .patches = {}}, {.rows = 2, .cols = 2, .patches = {}}}});
  sample.document_ends = {3, 6, 7};
  EXPECT_THAT(TokenPositions(DataOf({kEye}), sample),
              ElementsAre(Position{0, 0, 0}, Position{1, 1, 1}, Position{2, 2, 2}, Position{0, 0, 0}, Position{1, 1, 1},
                          Position{2, 2, 2}, Position{0, 0, 0}));
}

// Each encoder has its own tokens of an image; the other's square is another one.
TEST(TokenPositions, EncodersHaveTheirOwnImages) {
  EncoderData fine = kEye;
  fine.module = "fine", fine.token = kOther, fine.pixel_shuffle = 1;
  const Sample sample = SampleOf({kImage, kOther, kOther, kText},
                                 {{{.rows = 2, .cols = 2, .patches = {}}}, {{.rows = 1, .cols = 2, .patches = {}}}});
  EXPECT_THAT(TokenPositions(DataOf({kEye, fine}), sample),
              ElementsAre(Position{0, 0, 0}, Position{1, 1, 1}, Position{1, 1, 2}, Position{3, 3, 3}));
}

}  // namespace
}  // namespace planwright
