#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/data/images.h"
#include "executor/random/philox.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

Pixels Noise(int64_t height, int64_t width) {
  Pixels pixels{height, width, {}};
  const Philox draws(1, "noise");
  for (int64_t i = 0; i < height * width * 3; ++i) pixels.values.push_back(255 * draws.Uniform(i));
  return pixels;
}

Pixels Resize(const Pixels& pixels, int64_t height, int64_t width) {
  Resizer resizer(pixels.height, pixels.width, height, width);
  for (int64_t y = 0; y < pixels.height; ++y) resizer.Add(&pixels.values[y * pixels.width * 3]);
  return resizer.Take();
}

TEST(DynamicResolution, FollowsTheUpstreamRule) {
  std::ifstream file(InSource("tests/golden/upstream_public.json"));
  const auto golden = nlohmann::json::parse(file);
  int cases = 0;
  for (const auto& c : golden.at("dynamic_res_resize")) {
    const int64_t step = c["res_step"];
    const auto grid = DynamicResolution(c["height"], c["width"], step, c["min_patches"], c["max_patches"],
                                        c["pixel_shuffle"] ? 2 : 1);
    ASSERT_EQ(grid.ok(), c["ok"].get<bool>()) << c;
    if (!grid.ok()) continue;
    EXPECT_EQ(grid->rows * step, c["out_height"]) << c;
    EXPECT_EQ(grid->cols * step, c["out_width"]) << c;
    ++cases;
  }
  EXPECT_GE(cases, 4);
}

TEST(DynamicResolution, GivesLegalGridsOrRefuses) {
  for (int64_t height = 1; height < 90; height += 4) {
    for (int64_t width = 1; width < 90; width += 3) {
      const auto grid = DynamicResolution(height, width, 4, 4, 64, 2);
      if (!grid.ok()) continue;
      EXPECT_EQ(grid->rows % 2 + grid->cols % 2, 0);
      EXPECT_GE(grid->rows * grid->cols, 4);
      EXPECT_LE(grid->rows * grid->cols, 64);
    }
  }
  EXPECT_FALSE(DynamicResolution(20, 4000, 16, 4, 128, 2).ok());  // too thin
}

TEST(Resize, IsTheAntialiasedBilinearFilterOfTorch) {
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{16, 48}, {7, 5}, {40, 11}, {23, 31}}) {
    const Pixels pixels = Noise(23, 31), resized = Resize(pixels, height, width);
    at::Tensor input = at::empty({1, 3, 23, 31}, at::kDouble);
    for (int64_t y = 0; y < 23; ++y) {
      for (int64_t x = 0; x < 31; ++x) {
        for (int64_t c = 0; c < 3; ++c)
          input.data_ptr<double>()[(c * 23 + y) * 31 + x] = pixels.values[(y * 31 + x) * 3 + c];
      }
    }
    const at::Tensor expected =
        at::_upsample_bilinear2d_aa(input, {height, width}, /*align_corners=*/false).contiguous();
    double worst = 0;
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t c = 0; c < 3; ++c) {
          const double want = expected.data_ptr<double>()[(c * height + y) * width + x];
          worst = std::max(worst, std::abs(want - resized.values[(y * width + x) * 3 + c]));
        }
      }
    }
    EXPECT_LT(worst, 1e-10) << height << " by " << width;
  }
}

TEST(MakePatches, OrdersChannelRowColumnInsidePatchesRowByRow) {
  const Pixels pixels = Noise(8, 12);
  const Image image = MakePatches(pixels, {2, 3}, 4);  // its own size: nothing is resized
  EXPECT_EQ(image.rows, 2);
  EXPECT_EQ(image.cols, 3);
  ASSERT_EQ(image.patches.size(), 6u * 48);
  // Patch 5 is the third of the second row; its channel 1, row 2, column 3 is pixel (6, 11).
  EXPECT_NEAR(image.patches[5 * 48 + (1 * 4 + 2) * 4 + 3],
              (pixels.values[(6 * 12 + 11) * 3 + 1] / 255 - 0.4578275) / 0.26130258, 1e-12);
  EXPECT_NEAR(image.patches[0], (pixels.values[0] / 255 - 0.48145466) / 0.26862954, 1e-12);
}

}  // namespace
}  // namespace planwright::executor
