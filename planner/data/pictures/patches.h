// From an image file to the input of the vision encoder: decoded, resized, normalised and cut in patches
// (docs/model/vision_encoder.md#patches).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/data/pictures/decode_picture.h"
#include "planner/data/pictures/patch_grid.h"
#include "planner/plan/pixel_norm.h"

namespace planwright {

// Patches row by row; the values of a patch by channel, row, column.
struct Image {
  int64_t rows = 0, cols = 0;   // of patches
  std::vector<double> patches;  // [rows * cols][3 * patch^2]
};

// Takes the rows of an image of the grid's size one by one, normalises them and cuts patches. All filters but
// Bilinear: normalised in fp32. `patch`: pixels of a patch's side. What an image has behind the last whole patch of a
// row, or below the last row of patches, is left out.
template <typename Filter>
class PatchCutter {
 public:
  PatchCutter(const PatchGrid& grid, int64_t patch, const PixelNorm& norm = kClipNorm);
  // The next row: [cols * patch][3], and maybe more.
  void Add(const typename Filter::Number* row);
  // After the last row.
  Image Take() { return std::move(image_); }

 private:
  const int64_t patch_;
  const PixelNorm norm_;
  Image image_;
  std::vector<double> band_;  // a row of patches, [3][patch][cols * patch]
  int64_t rows_ = 0;          // of the band that are there
  std::vector<float> bytes_;  // a row of whole numbers
};

// The patches of an image file that is turned by `orientation` (orientation.h). `square`: pixels of each side to which
// it is resized, of which the grid is a part; 0: those of the grid. Errors of DecodePicture.
template <typename Filter>
absl::StatusOr<Image> PatchesOfPicture(std::string_view file, const PatchGrid& grid, int64_t patch, int orientation = 1,
                                       const PixelNorm& norm = kClipNorm, int64_t square = 0);

}  // namespace planwright
