#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "planner/pictures/images.h"

namespace planwright {
namespace {

// Mean and deviation of red, green and blue over the images that CLIP was trained on.
constexpr double kMean[3] = {0.48145466, 0.4578275, 0.40821073};
constexpr double kDeviation[3] = {0.26862954, 0.26130258, 0.27577711};

// `side` rounded to a multiple of `factor`: up if side * other stays within max_patches, else down, but to one factor
// at least.
int64_t ToMultiple(int64_t side, int64_t other, int64_t factor, int64_t max_patches) {
  if (side % factor != 0) {
    const int64_t up = (side / factor + 1) * factor;
    side = up * other <= max_patches ? up : side / factor * factor;
  }
  return std::max(side, factor);
}

// Patches that cover a side.
int64_t Covering(int64_t side, int64_t patch, GridRule rule) {
  const int64_t patches = (side + patch - 1) / patch;
  // n + 0.5 of an exact multiple is as near to n as to n + 1, and goes to the even one.
  return rule == GridRule::kRoundHalfEven && side % patch == 0 ? patches + patches % 2 : patches;
}

// (x / 255 - mean) / deviation, in the arithmetic of torchvision: fp32, with the constants multiplied by 255.
float Normalised(float value, int64_t channel) {
  return (value - static_cast<float>(kMean[channel]) * 255) / (static_cast<float>(kDeviation[channel]) * 255);
}
double Normalised(double value, int64_t channel) { return (value / 255 - kMean[channel]) / kDeviation[channel]; }

}  // namespace

absl::StatusOr<PatchGrid> DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches,
                                            int64_t max_patches, int64_t pixel_shuffle, GridRule rule) {
  // Patches that cover the image, shrunk to the maximum and then grown to the minimum; rounding as in the published
  // code.
  int64_t rows = Covering(height, patch, rule), cols = Covering(width, patch, rule);
  // The square root: both sides shrink by it, so the number of patches shrinks by its square.
  const double shrink = std::min(std::sqrt(static_cast<double>(max_patches) / (rows * cols)), 1.0);
  rows = static_cast<int64_t>(std::floor(shrink * rows));
  cols = static_cast<int64_t>(std::floor(shrink * cols));
  const bool half_even = rule == GridRule::kRoundHalfEven;
  const auto too_thin = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("an image of ", width, " by ", height, " pixels is too thin for at most ", max_patches,
                     " patches of ", patch, " pixels, with sides that pixel_shuffle ", pixel_shuffle, " divides"));
  };
  if (half_even && rows * cols == 0) return too_thin();  // transformers divides by it
  if (rows * cols < min_patches && !(half_even && min_patches == max_patches)) {
    const double grow = std::sqrt(static_cast<double>(min_patches) / std::max<int64_t>(rows * cols, 1));
    rows = static_cast<int64_t>(std::ceil(grow * rows));
    cols = static_cast<int64_t>(std::ceil(grow * cols));
  }
  rows = ToMultiple(rows, cols, pixel_shuffle, max_patches);
  cols = ToMultiple(cols, rows, pixel_shuffle, max_patches);
  // A side of one factor is never rounded down further, so a thin image can still have too many patches.
  if (rows * cols > max_patches) return too_thin();
  return PatchGrid{rows, cols};
}

template <typename Filter>
Image MakePatches(const Pixels<Filter>& pixels, const PatchGrid& grid, int64_t patch) {
  Image image{grid.rows, grid.cols, {}};
  image.patches.reserve(pixels.values.size());
  for (int64_t i = 0; i < grid.rows * grid.cols; ++i) {
    const int64_t top = i / grid.cols * patch, left = i % grid.cols * patch;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = top; y < top + patch; ++y) {
        for (int64_t x = left; x < left + patch; ++x) {
          image.patches.push_back(Normalised(pixels.values[(y * pixels.width + x) * 3 + c], c));
        }
      }
    }
  }
  return image;
}

template Image MakePatches(const Pixels<Bilinear>&, const PatchGrid&, int64_t);
template Image MakePatches(const Pixels<Bicubic>&, const PatchGrid&, int64_t);

}  // namespace planwright
