// The size to which an image is resized, in patches (docs/model/vision_encoder.md#image-sizes).
#pragma once

#include <cstdint>

namespace planwright {

struct PatchGrid {
  int64_t rows = 0, cols = 0;
};

// How the patches of a side are counted. kRoundHalfEven: Python's round(side / patch + 0.5), which is an even number
// for exact multiples: a side of three patches becomes one of four. kSmartResize: image tokens are, by round(side /
// token), and an image is scaled by its pixels, as Qwen's models have it.
enum class GridRule { kCeil, kRoundHalfEven, kSmartResize };

// The patches of an image of height x width pixels, as they are counted before it is scaled. With kSmartResize a side
// may have none.
PatchGrid CoveringGrid(int64_t height, int64_t width, int64_t patch, int64_t pixel_shuffle, GridRule rule);

// The grid of patches to which an image of height x width pixels is resized: about its own size, but scaled to between
// min_patches and max_patches patches, with sides that `pixel_shuffle` divides. With kRoundHalfEven it is the grid of
// transformers' image processor of nemotron_h_omni, and a small image is not scaled if both limits are the same; with
// kSmartResize it is that of Qwen2-VL's. An image so thin that this has no rows, or too many patches, has the least
// height, and as much width as max_patches leaves (or the other way round). `patch`: pixels of a patch's side.
// max_patches: at least pixel_shuffle squared.
PatchGrid DynamicResolution(int64_t height, int64_t width, int64_t patch, int64_t min_patches, int64_t max_patches,
                            int64_t pixel_shuffle, GridRule rule);

}  // namespace planwright
