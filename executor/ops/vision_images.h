// Where the images of a packed batch lie: P patch rows image after image, row-major; N token rows the same with each
// image's class tokens first.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor::ops {

struct ImageSpan {
  int64_t rows = 0, columns = 0;  // of patches
  int64_t first_patch = 0;        // in P rows
  int64_t first_token = 0;        // in N rows: its first class token
  int64_t patches() const { return rows * columns; }
};

// image_grid: int64 host [n, 2], rows and columns of patches; n may be 0.
std::vector<ImageSpan> ImageSpans(const at::Tensor& image_grid, int64_t class_tokens);

int64_t PatchCount(const std::vector<ImageSpan>& images);

// Rows of N that hold patches [P], and rows that hold class tokens [n * class_tokens]; int64 on `device`.
at::Tensor PatchRows(const std::vector<ImageSpan>& images, int64_t class_tokens, at::Device device);
at::Tensor ClassRows(const std::vector<ImageSpan>& images, int64_t class_tokens, at::Device device);

// A host vector as an int64 tensor on `device`.
at::Tensor Indices(const std::vector<int64_t>& values, at::Device device);

}  // namespace planwright::executor::ops
