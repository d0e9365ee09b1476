// From an image file to the input of the vision encoder: decoded, resized, normalised and cut in patches
// (docs/model/vision_encoder.md#patches).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/pictures/decode_picture.h"
#include "planner/pictures/patch_grid.h"

namespace planwright {

// Mean and deviation of red, green and blue over the images that CLIP was trained on.
inline constexpr double kClipMean[3] = {0.48145466, 0.4578275, 0.40821073};
inline constexpr double kClipDeviation[3] = {0.26862954, 0.26130258, 0.27577711};

// Patches row by row; the values of a patch by channel, row, column.
struct Image {
  int64_t rows = 0, cols = 0;   // of patches
  std::vector<double> patches;  // [rows * cols][3 * patch^2]
};

// Scales the values of an image of the grid's size to x / 255, normalises them by CLIP's mean and deviation, and cuts
// patches. Bicubic: normalised in fp32. `patch`: pixels of a patch's side.
template <typename Filter>
Image MakePatches(const Pixels<Filter>& pixels, const PatchGrid& grid, int64_t patch);

// The patches of an image file. Errors of DecodePicture.
template <typename Filter>
absl::StatusOr<Image> PatchesOfPicture(std::string_view file, const PatchGrid& grid, int64_t patch) {
  const absl::StatusOr<Pixels<Filter>> pixels = DecodePicture<Filter>(file, grid.rows * patch, grid.cols * patch);
  if (!pixels.ok()) return pixels.status();
  return MakePatches(*pixels, grid, patch);
}

}  // namespace planwright
