// From a PNG file to the input of the vision encoder: pixels, a size by the rule of dynamic resolution, then resized,
// normalised and cut in patches (docs/model/vision_encoder.md#image-sizes, docs/model/vision_encoder.md#patches).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "executor/data/sample_source.h"

namespace planwright::executor {

// --- PNG files

// Row by row; red, green and blue of a pixel together; values from 0 to 255.
struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<double> values;  // [height][width][3]
};

inline constexpr int64_t kMaxPngPixels = int64_t{1} << 26;  // 1.6 GB once decoded; larger files are refused
inline constexpr int64_t kPngHeaderBytes = 24;

// Height and width, from the first kPngHeaderBytes bytes of a file. InvalidArgument if they are not those of a PNG.
struct PngSize {
  int64_t height = 0, width = 0;
};
absl::StatusOr<PngSize> ReadPngSize(const std::string& header);

// Decodes a file. Transparent pixels are mixed with white, in the file's own values and not in linear light, as common
// image loaders do. InvalidArgument if the file is damaged or too large.
absl::StatusOr<Pixels> DecodePng(const std::string& file);

// --- patches

struct PatchGrid {
  int64_t rows = 0, cols = 0;
};

// The grid of patches to which an image of height x width pixels is resized: about its own size, but scaled to between
// min_patches and max_patches patches, with sides that `pixel_shuffle` divides. InvalidArgument if the image is so thin
// that no such grid exists. `patch`: pixels of a patch's side.
absl::StatusOr<PatchGrid> DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches,
                                            int64_t max_patches, int64_t pixel_shuffle);

// Bilinear with antialias: a triangle filter whose support grows with the scale if the image shrinks. Half-pixel
// centres; weights beyond the edges are dropped and the rest is normalised.
Pixels Resize(const Pixels& pixels, int64_t height, int64_t width);

// Resizes to the grid, scales values to x / 255, normalises them by CLIP's mean and deviation, and cuts patches. Values
// of a patch are in the order (channel, row, column).
Image MakePatches(const Pixels& pixels, const PatchGrid& grid, int64_t patch);

}  // namespace planwright::executor
