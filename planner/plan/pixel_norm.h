// By what the pixels of an encoder are normalized: (value / 255 - mean) / deviation, for red, green and blue.
#pragma once

#include <array>
#include <string_view>

namespace planwright {

struct PixelNorm {
  std::string_view name;  // in statements of models and in plans
  std::array<double, 3> mean, deviation;
};

// `clip`: mean and deviation over the images that CLIP was trained on. `half`: values from -1 to 1.
inline constexpr PixelNorm kPixelNorms[] = {
    {"clip", {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
    {"half", {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}},
};
inline constexpr const PixelNorm& kClipNorm = kPixelNorms[0];

// Null: there is none of this name.
inline constexpr const PixelNorm* FindPixelNorm(std::string_view name) {
  for (const PixelNorm& norm : kPixelNorms) {
    if (norm.name == name) return &norm;
  }
  return nullptr;
}

}  // namespace planwright
