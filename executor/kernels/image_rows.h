// Kernels on the patches of a packed batch of images, by their places (docs/model/qwen_vit.md): which row and column of
// its image a patch has, and the table of positions that is resized to each image (executor/ops/position_table.cc).
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// An image, or what one part has of it. Patches lie image after image, row by row.
struct PlacedImage {
  int64_t first_patch = 0;              // among all patches
  int64_t rows = 0, columns = 0;        // of patches, that are here
  int64_t first_row = 0, all_rows = 0;  // of the image: that of the first patch here, and how many it has
};
constexpr int64_t kPlacedImageNumbers = 5;
static_assert(sizeof(PlacedImage) == kPlacedImageNumbers * sizeof(int64_t), "a row of an integer tensor is one");

// In the order of their patches, in device memory. Together they have `patches`.
struct PlacedImages {
  const PlacedImage* of = nullptr;
  int64_t count = 0, patches = 0;
};

// places [2, patches]: the row and the column of each patch in its image.
void LaunchPatchPlaces(const PlacedImages& images, int64_t* places, cudaStream_t stream);

// A table [side * side, width] of positions. `width` is a multiple of 8; sides and rows of images are below 2^15.
struct PositionTable {
  int64_t side = 0, width = 0;
};

// x [patches, width] = e + the table, resized to each image bilinearly with aligned corners: a sum of four rows, added
// in fp32 and rounded to bf16 once before it is added. All are contiguous and on 16 bytes.
void LaunchAddPositions(const PlacedImages& images, const PositionTable& table, const __nv_bfloat16* e,
                        const __nv_bfloat16* rows, __nv_bfloat16* x, cudaStream_t stream);

// gradient [side * side, width] fp32 += what dx [patches, width] gives to each row of the table, summed in fp32 in the
// order of the patches. Both are contiguous and on 16 bytes.
void LaunchAddPositionsGradient(const PlacedImages& images, const PositionTable& table, const __nv_bfloat16* dx,
                                float* gradient, cudaStream_t stream);

}  // namespace planwright::executor::ops
