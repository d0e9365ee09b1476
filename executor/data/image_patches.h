// From pixels to what the encoder takes: a size from the rule of dynamic resolution, resized, normalised, cut into
// patches.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "executor/data/png_image.h"
#include "executor/data/sample_source.h"

namespace planwright::executor {

struct PatchGrid {
  int64_t rows = 0, cols = 0;
};

// The grid of patches an image of these pixels is resized to (facts 3.9, dynamic-resolution resize): about its own
// size, scaled to [min_patches, max_patches] and to sides that `pixel_shuffle` divides. An error if a thin image cannot
// satisfy them.
absl::StatusOr<PatchGrid> DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches,
                                            int64_t max_patches, int64_t pixel_shuffle);

// Bilinear with antialias: a triangle filter whose support grows with the scale when shrinking; half-pixel centres,
// weights cut at the edges and normalised.
Pixels Resize(const Pixels& pixels, int64_t height, int64_t width);

// Resizes to the grid, takes x / 255 to CLIP's mean and deviation, and cuts patches: (channel, row, column) inside a
// patch.
Image MakePatches(const Pixels& pixels, const PatchGrid& grid, int64_t patch);

}  // namespace planwright::executor
