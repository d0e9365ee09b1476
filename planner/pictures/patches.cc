#include "planner/pictures/patches.h"

namespace planwright {
namespace {

// (x / 255 - mean) / deviation, in the arithmetic of torchvision: fp32, with the constants multiplied by 255.
float Normalised(float value, int64_t channel) {
  return (value - static_cast<float>(kClipMean[channel]) * 255) / (static_cast<float>(kClipDeviation[channel]) * 255);
}
double Normalised(double value, int64_t channel) {
  return (value / 255 - kClipMean[channel]) / kClipDeviation[channel];
}

}  // namespace

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
