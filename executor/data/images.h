// From a PNG file to the input of the vision encoder: pixels, a size by the rule of dynamic resolution, then resized,
// normalised and cut in patches (docs/model/vision_encoder.md#image-sizes, docs/model/vision_encoder.md#patches).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "executor/data/sample_source.h"

namespace planwright::executor {

// --- PNG files

// Row by row; red, green and blue of a pixel together; values from 0 to 255.
struct Pixels {
  int64_t height = 0, width = 0;
  std::vector<double> values;  // [height][width][3]
};

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
// not in linear light, as common image loaders do. InvalidArgument if the file is damaged or too large.
absl::StatusOr<Pixels> DecodePng(const std::string& file, int64_t height, int64_t width);

// --- patches

struct PatchGrid {
  int64_t rows = 0, cols = 0;
};

// The grid of patches to which an image of height x width pixels is resized: about its own size, but scaled to between
// min_patches and max_patches patches, with sides that `pixel_shuffle` divides. InvalidArgument if the image is so thin
// that no such grid exists. `patch`: pixels of a patch's side.
absl::StatusOr<PatchGrid> DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches,
                                            int64_t max_patches, int64_t pixel_shuffle);

// One output position is a weighted sum of the inputs [first, first + weights.size()).
struct ResizeTaps {
  int64_t first = 0;
  std::vector<double> weights;
};

// Bilinear with antialias: a triangle filter whose support grows with the scale if the image shrinks. Half-pixel
// centres; weights beyond the edges are dropped and the rest is normalised. Takes the rows of an image one by one.
class Resizer {
 public:
  Resizer(int64_t from_height, int64_t from_width, int64_t height, int64_t width);
  // The next row: [from_width][3].
  void Add(const double* row);
  // After the last row.
  Pixels Take() { return std::move(result_); }

 private:
  const std::vector<ResizeTaps> across_, down_;
  std::vector<double> narrow_;  // the row, resized along itself
  Pixels result_;
  int64_t row_ = 0;    // that comes next
  int64_t first_ = 0;  // rows of the result before this one are done
};

// Scales the values of an image of the grid's size to x / 255, normalises them by CLIP's mean and deviation, and cuts
// patches. Values of a patch are in the order (channel, row, column).
Image MakePatches(const Pixels& pixels, const PatchGrid& grid, int64_t patch);

}  // namespace planwright::executor
