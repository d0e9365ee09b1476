// Where the images of a packed batch lie (docs/model/vision_encoder.md#class-tokens). P: rows of patches, image after
// image, each image row by row. N: the same with each image's class tokens before its patches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor::ops {

struct ImageSpan {
  int64_t rows = 0, columns = 0;  // of patches
  int64_t first_patch = 0;        // index among the P rows
  int64_t first_token = 0;        // index of its first class token among the N rows
  int64_t patches() const { return rows * columns; }
};

// image_grid: i64 [n,2] in host memory, rows and columns of patches of each image; n may be 0. c10::Error if it is not
// that.
std::vector<ImageSpan> ImageSpans(const at::Tensor& image_grid, int64_t class_tokens);

// P.
int64_t PatchCount(const std::vector<ImageSpan>& images);

// Which of the N rows hold patches, i64 [P], and which hold class tokens, i64 [n * class_tokens]; on `device`.
at::Tensor PatchRows(const std::vector<ImageSpan>& images, int64_t class_tokens, at::Device device);
at::Tensor ClassRows(const std::vector<ImageSpan>& images, int64_t class_tokens, at::Device device);

// A vector as an i64 tensor on `device`. The host does not wait.
at::Tensor Indices(const std::vector<int64_t>& values, at::Device device);

}  // namespace planwright::executor::ops
