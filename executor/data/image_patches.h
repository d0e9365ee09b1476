// From the pixels of an image to the input of the vision encoder: a size by the rule of dynamic resolution, then
// resized, normalised and cut in patches (docs/model/vision_encoder.md#image-sizes,
// docs/model/vision_encoder.md#patches).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "executor/data/png_image.h"
#include "executor/data/sample_source.h"

namespace planwright::executor {

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
