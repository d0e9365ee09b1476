// From a PNG file to the input of the vision encoder: pixels, a size by the rule of dynamic resolution, then resized,
// normalised and cut in patches (docs/model/vision_encoder.md#image-sizes, docs/model/vision_encoder.md#patches).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/pictures/resizer.h"

namespace planwright {

// Patches row by row; the values of a patch by channel, row, column (docs/model/vision_encoder.md#patches).
struct Image {
  int64_t rows = 0, cols = 0;   // of patches
  std::vector<double> patches;  // [rows * cols][3 * patch^2]
};

// --- PNG files

// Larger files are refused. An interlaced file has no rows before it is read as a whole: 4 bytes for each pixel.
inline constexpr int64_t kMaxPngPixels = int64_t{1} << 26, kMaxInterlacedPixels = int64_t{1} << 24;
inline constexpr int64_t kPngHeaderBytes = 29;

// Height and width, from the first kPngHeaderBytes bytes of a file. InvalidArgument if they are not those of a PNG.
struct PngSize {
  int64_t height = 0, width = 0;
};
absl::StatusOr<PngSize> ReadPngSize(const std::string& header);

// Decodes a file and resizes it (Resizer) to height x width pixels, row by row: beside the file there are the result
// and a few rows, however large the picture is. Transparent pixels are mixed with white, in the file's own values and
// not in linear light, as common image loaders do. Bilinear: values become those of sRGB, and mixed ones are not
// rounded. Bicubic: values are as Pillow reads them. What a file says of its gamma is not used, of 16 bits the high
// eight are, and mixed values are rounded to 8 bits. InvalidArgument if the file is damaged or too large.
template <typename Filter>
absl::StatusOr<Pixels<Filter>> DecodePng(const std::string& file, int64_t height, int64_t width);

// --- patches

struct PatchGrid {
  int64_t rows = 0, cols = 0;
};

// How the patches that cover a side are counted. kRoundHalfEven: Python's round(side / patch + 0.5), which is an even
// number for exact multiples: a side of three patches becomes one of four.
enum class GridRule { kCeil, kRoundHalfEven };

// The grid of patches to which an image of height x width pixels is resized: about its own size, but scaled to between
// min_patches and max_patches patches, with sides that `pixel_shuffle` divides. With kRoundHalfEven it is the grid of
// transformers' image processor, and a small image is not scaled if both limits are the same. InvalidArgument if the
// image is so thin that it has no such grid, or one of more than max_patches. `patch`: pixels of a patch's side.
absl::StatusOr<PatchGrid> DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches,
                                            int64_t max_patches, int64_t pixel_shuffle, GridRule rule);

// Scales the values of an image of the grid's size to x / 255, normalises them by CLIP's mean and deviation, and cuts
// patches. Values of a patch are in the order (channel, row, column). Bicubic: normalised in fp32.
template <typename Filter>
Image MakePatches(const Pixels<Filter>& pixels, const PatchGrid& grid, int64_t patch);

// The patches of a PNG file. Errors of DecodePng.
template <typename Filter>
absl::StatusOr<Image> PatchesOfPng(const std::string& file, const PatchGrid& grid, int64_t patch) {
  const absl::StatusOr<Pixels<Filter>> pixels = DecodePng<Filter>(file, grid.rows * patch, grid.cols * patch);
  if (!pixels.ok()) return pixels.status();
  return MakePatches(*pixels, grid, patch);
}

}  // namespace planwright
