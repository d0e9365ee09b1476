#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "planner/base/random/philox.h"
#include "planner/data/pictures/patches.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

template <typename Filter>
Pixels<Filter> Noise(int64_t height, int64_t width) {
  Pixels<Filter> pixels{height, width, {}};
  const Philox draws(1, "noise");
  for (int64_t i = 0; i < height * width * 3; ++i) pixels.values.push_back(255 * draws.Uniform(i));
  return pixels;
}

template <typename Filter>
Pixels<Filter> Resize(const Pixels<Filter>& pixels, int64_t height, int64_t width) {
  Pixels<Filter> resized{height, width, {}};
  Resizer<Filter> resizer(pixels.height, pixels.width, height, width,
                          [&](const auto* row) { resized.values.insert(resized.values.end(), row, row + width * 3); });
  for (int64_t y = 0; y < pixels.height; ++y) resizer.Add(&pixels.values[y * pixels.width * 3]);
  return resized;
}

// The largest difference from what `torch` makes of the same pixels: [1, 3, height, width] of the filter's type.
template <typename Filter, typename Torch>
double WorstDifference(const Pixels<Filter>& pixels, int64_t height, int64_t width, const Torch& torch) {
  using Number = typename Filter::Number;
  const Pixels<Filter> resized = Resize(pixels, height, width);
  at::Tensor input = at::empty({1, 3, pixels.height, pixels.width}, c10::CppTypeToScalarType<Number>::value);
  for (int64_t i = 0; i < pixels.height * pixels.width; ++i) {
    for (int64_t c = 0; c < 3; ++c)
      input.data_ptr<Number>()[c * pixels.height * pixels.width + i] = pixels.values[i * 3 + c];
  }
  const at::Tensor expected = torch(input, std::vector<int64_t>{height, width}).contiguous();
  double worst = 0;
  for (int64_t i = 0; i < height * width; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      const double want = expected.data_ptr<Number>()[c * height * width + i];
      worst = std::max(worst, std::abs(want - resized.values[i * 3 + c]));
    }
  }
  return worst;
}

TEST(DynamicResolution, FollowsTheUpstreamRule) {
  std::ifstream file(InSource("tests/golden/upstream_public.json"));
  const auto golden = nlohmann::json::parse(file);
  int cases = 0;
  for (const auto& c : golden.at("dynamic_res_resize")) {
    const int64_t step = c["res_step"];
    const PatchGrid grid = DynamicResolution(c["height"], c["width"], step, c["min_patches"], c["max_patches"],
                                             c["pixel_shuffle"] ? 2 : 1, GridRule::kCeil);
    EXPECT_LE(grid.rows * grid.cols, c["max_patches"]) << c;
    if (!c["ok"].get<bool>()) continue;
    EXPECT_EQ(grid.rows * step, c["out_height"]) << c;
    EXPECT_EQ(grid.cols * step, c["out_width"]) << c;
    ++cases;
  }
  EXPECT_GE(cases, 4);
}

// planner/plan/sample_images.cc counts on it.
TEST(DynamicResolution, KeepsHalfOfTheLimits) {
  for (const auto& [least, most] : std::vector<std::pair<int64_t, int64_t>>{{10, 12}, {50, 64}, {30, 64}, {60, 61}}) {
    for (int64_t height = 1; height < 130; height += 3) {
      for (int64_t width = 1; width < 130; width += 2) {
        for (const GridRule rule : {GridRule::kCeil, GridRule::kRoundHalfEven}) {
          const PatchGrid grid = DynamicResolution(height, width, 4, least, most, 2, rule);
          EXPECT_GE(grid.rows * grid.cols, std::min(least, most / 2)) << height << " by " << width;
        }
        const PatchGrid smart = DynamicResolution(height, width, 4, least, most, 2, GridRule::kSmartResize);
        EXPECT_GE(smart.rows * smart.cols, std::min(least, most / 4)) << height << " by " << width;
      }
    }
  }
}

TEST(DynamicResolution, GivesALegalGridOfEveryImage) {
  const std::vector<int64_t> sides = {1, 2, 5, 16, 17, 63, 64, 200, 3024, 4032, 8000, 65500};
  for (const GridRule rule : {GridRule::kCeil, GridRule::kRoundHalfEven, GridRule::kSmartResize}) {
    const std::vector<std::pair<int64_t, int64_t>> limits = {{4, 64}, {4, 4}, {64, 64}, {16, 256}, {1, 4}};
    for (const auto& [least, most] : limits) {
      for (const int64_t height : sides) {
        for (const int64_t width : sides) {
          const PatchGrid grid = DynamicResolution(height, width, 4, least, most, 2, rule);
          EXPECT_EQ(grid.rows % 2 + grid.cols % 2, 0);
          EXPECT_GE(std::min(grid.rows, grid.cols), 2);
          EXPECT_LE(grid.rows * grid.cols, most) << width << " x " << height << ", at most " << most;
        }
      }
    }
  }
  // So thin that the published rule gives it more than max_patches, or no rows at all.
  const PatchGrid thin = DynamicResolution(20, 4000, 16, 4, 128, 2, GridRule::kCeil);
  EXPECT_EQ(std::pair(thin.rows, thin.cols), std::pair(int64_t{2}, int64_t{64}));
  const PatchGrid line = DynamicResolution(65500, 1, 4, 4, 64, 2, GridRule::kRoundHalfEven);
  EXPECT_EQ(std::pair(line.rows, line.cols), std::pair(int64_t{32}, int64_t{2}));
}

// By hand: sides to the nearest whole token of 8 pixels, halves to the even number; then by pixels.
TEST(DynamicResolution, SmartResizeCountsTokens) {
  const auto grid = [](int64_t height, int64_t width, int64_t least = 4, int64_t most = 400) {
    const PatchGrid found = DynamicResolution(height, width, 4, least, most, 2, GridRule::kSmartResize);
    return std::pair(found.rows, found.cols);
  };
  using Grid = std::pair<int64_t, int64_t>;
  EXPECT_EQ(grid(16, 27), Grid(4, 6));      // 2 and 3.4 tokens
  EXPECT_EQ(grid(12, 20), Grid(4, 4));      // 1.5 and 2.5 tokens: both to 2
  EXPECT_EQ(grid(13, 21), Grid(4, 6));      // 1.6 and 2.6 tokens
  EXPECT_EQ(grid(3, 16), Grid(2, 6));       // 0.4 tokens are none, so both sides grow: by sqrt(64 / 48), rounded up
  EXPECT_EQ(grid(16, 16, 36), Grid(6, 6));  // 4 tokens grow to 9: by sqrt(576 / 256)
  EXPECT_EQ(grid(80, 80, 4, 100), Grid(10, 10));  // 100 tokens shrink to 25
  EXPECT_EQ(grid(90, 60, 4, 100), Grid(12, 8));   // by sqrt(5400 / 1600): 6.1 and 4.1 tokens
  EXPECT_EQ(grid(2, 4000, 4, 100), Grid(2, 50));  // 25 tokens in a row; transformers makes 279 of them
}

// Photos, with the limits of the published image processor.
TEST(DynamicResolution, OfPhotosIsThatOfTransformers) {
  const auto grid = [](int64_t width, int64_t height) {
    const PatchGrid found = DynamicResolution(height, width, 16, 1024, 13312, 2, GridRule::kRoundHalfEven);
    return std::pair(found.rows, found.cols);
  };
  using Grid = std::pair<int64_t, int64_t>;
  EXPECT_EQ(grid(4032, 3024), Grid(100, 132));  // 12 megapixels: wider than a table of 2048 pixels, which is resized
  EXPECT_EQ(grid(3024, 4032), Grid(132, 100));
  EXPECT_EQ(grid(2480, 3508), Grid(136, 96));  // A4 with 300 dots an inch
  EXPECT_EQ(grid(8000, 2000), Grid(58, 228));  // a panorama
}

TEST(Resize, IsTheAntialiasedBilinearFilterOfTorch) {
  const auto torch = [](const at::Tensor& input, const std::vector<int64_t>& size) {
    return at::_upsample_bilinear2d_aa(input, size, /*align_corners=*/false);
  };
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{16, 48}, {7, 5}, {40, 11}, {23, 31}})
    EXPECT_LT(WorstDifference(Noise<Bilinear>(23, 31), height, width, torch), 1e-10) << height << " by " << width;
}

// Torch's kernels for old processors round in another order. transformers_pixels_test compares with those of others,
// and more closely.
TEST(Resize, IsTheAntialiasedBicubicFilterOfTorchInFp32) {
  const auto torch = [](const at::Tensor& input, const std::vector<int64_t>& size) {
    return at::_upsample_bicubic2d_aa(input, size, /*align_corners=*/false);
  };
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{16, 48}, {7, 5}, {40, 11}, {23, 31}})
    EXPECT_LT(WorstDifference(Noise<Bicubic>(23, 31), height, width, torch), 1e-3) << height << " by " << width;
  // In fp64 this one would be off by 0.03: some windows end elsewhere.
  EXPECT_LT(WorstDifference(Noise<Bicubic>(2, 2500), 2, 1824, torch), 1e-3);
}

TEST(Resize, BicubicLeavesAnImageOfItsOwnSizeAndKeepsWhatOvershoots) {
  const Pixels<Bicubic> noise = Noise<Bicubic>(9, 12);
  EXPECT_EQ(Resize(noise, 9, 12).values, noise.values);
  const Pixels<Bicubic> edge{1, 4, {0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255}};
  const std::vector<float> values = Resize(edge, 1, 16).values;
  EXPECT_LT(*std::min_element(values.begin(), values.end()), -10);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 265);
}

TEST(PatchCutter, OrdersChannelRowColumnInsidePatchesRowByRow) {
  const Pixels<Bilinear> pixels = Noise<Bilinear>(8, 12);
  PatchCutter<Bilinear> cutter({2, 3}, 4);
  for (int64_t y = 0; y < 8; ++y) cutter.Add(&pixels.values[y * 12 * 3]);
  const Image image = cutter.Take();
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
