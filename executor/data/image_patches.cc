#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "executor/data/images.h"

namespace planwright::executor {
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

std::vector<ResizeTaps> TapsOf(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / to, support = std::max(scale, 1.0);
  std::vector<ResizeTaps> taps(to);
  for (int64_t i = 0; i < to; ++i) {
    // The window of the filter around the output's centre, in input coordinates. + 0.5 rounds to the nearest.
    const double centre = (i + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), from);
    taps[i].first = first;
    double sum = 0;
    for (int64_t x = first; x < end; ++x) {
      taps[i].weights.push_back(std::max(0.0, 1 - std::abs((x + 0.5 - centre) / support)));
      sum += taps[i].weights.back();
    }
    for (double& weight : taps[i].weights) weight /= sum;
  }
  return taps;
}

}  // namespace

absl::StatusOr<PatchGrid> DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches,
                                            int64_t max_patches, int64_t pixel_shuffle) {
  // Patches that cover the image, shrunk to the maximum and then grown to the minimum; rounding as in the published
  // code.
  int64_t rows = (height + patch - 1) / patch, cols = (width + patch - 1) / patch;
  // The square root: both sides shrink by it, so the number of patches shrinks by its square.
  const double shrink = std::min(std::sqrt(static_cast<double>(max_patches) / (rows * cols)), 1.0);
  rows = static_cast<int64_t>(std::floor(shrink * rows));
  cols = static_cast<int64_t>(std::floor(shrink * cols));
  if (rows * cols < min_patches) {
    const double grow = std::sqrt(static_cast<double>(min_patches) / std::max<int64_t>(rows * cols, 1));
    rows = static_cast<int64_t>(std::ceil(grow * rows));
    cols = static_cast<int64_t>(std::ceil(grow * cols));
  }
  rows = ToMultiple(rows, cols, pixel_shuffle, max_patches);
  cols = ToMultiple(cols, rows, pixel_shuffle, max_patches);
  // A side of one factor is never rounded down further, so a thin image can still have too many patches.
  if (rows * cols > max_patches) {
    return absl::InvalidArgumentError(
        absl::StrCat("an image of ", width, " by ", height, " pixels is too thin for at most ", max_patches,
                     " patches of ", patch, " pixels, with sides that pixel_shuffle ", pixel_shuffle, " divides"));
  }
  return PatchGrid{rows, cols};
}

// First along rows, then along columns: the filter is a product of two.
Resizer::Resizer(int64_t from_height, int64_t from_width, int64_t height, int64_t width)
    : across_(TapsOf(from_width, width)), down_(TapsOf(from_height, height)),
      narrow_(width * 3), result_{height, width, std::vector<double>(height * width * 3)} {}

void Resizer::Add(const double* row) {
  const int64_t width = result_.width;
  std::fill(narrow_.begin(), narrow_.end(), 0.0);
  for (int64_t x = 0; x < width; ++x) {
    const ResizeTaps& taps = across_[x];
    for (size_t tap = 0; tap < taps.weights.size(); ++tap) {
      const double* source = &row[(taps.first + tap) * 3];
      for (int64_t c = 0; c < 3; ++c) narrow_[x * 3 + c] += taps.weights[tap] * source[c];
    }
  }
  const auto end = [&](int64_t y) { return down_[y].first + static_cast<int64_t>(down_[y].weights.size()); };
  while (first_ < result_.height && end(first_) <= row_) ++first_;
  for (int64_t y = first_; y < result_.height && down_[y].first <= row_; ++y) {
    if (end(y) <= row_) continue;
    const double weight = down_[y].weights[row_ - down_[y].first];
    double* to = &result_.values[y * width * 3];
    for (int64_t i = 0; i < width * 3; ++i) to[i] += weight * narrow_[i];
  }
  ++row_;
}

Image MakePatches(const Pixels& pixels, const PatchGrid& grid, int64_t patch) {
  Image image{grid.rows, grid.cols, {}};
  image.patches.reserve(pixels.values.size());
  for (int64_t i = 0; i < grid.rows * grid.cols; ++i) {
    const int64_t top = i / grid.cols * patch, left = i % grid.cols * patch;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = top; y < top + patch; ++y) {
        for (int64_t x = left; x < left + patch; ++x) {
          image.patches.push_back((pixels.values[(y * pixels.width + x) * 3 + c] / 255 - kMean[c]) / kDeviation[c]);
        }
      }
    }
  }
  return image;
}

}  // namespace planwright::executor
