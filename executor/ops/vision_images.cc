#include "executor/ops/vision_images.h"

#include <ATen/ops/tensor.h>

#include "executor/tensors.h"

namespace planwright::executor::ops {

std::vector<ImageSpan> ImageSpans(const at::Tensor& image_grid, int64_t class_tokens) {
  TORCH_CHECK(
      image_grid.dim() == 2 && image_grid.size(1) == 2 && image_grid.scalar_type() == at::kLong && image_grid.is_cpu(),
      "image_grid must be i64 [images, 2] in host memory, not ", image_grid.toString(), " ", image_grid.sizes());
  std::vector<ImageSpan> images;
  int64_t patch = 0, token = 0;
  const auto grid = image_grid.accessor<int64_t, 2>();
  for (int64_t i = 0; i < image_grid.size(0); ++i) {
    TORCH_CHECK(grid[i][0] > 0 && grid[i][1] > 0, "image ", i, " has a grid of ", grid[i][0], " x ", grid[i][1],
                " patches");
    images.push_back({grid[i][0], grid[i][1], patch, token});
    patch += images.back().patches();
    token += images.back().patches() + class_tokens;
  }
  return images;
}

int64_t PatchCount(const std::vector<ImageSpan>& images) {
  return images.empty() ? 0 : images.back().first_patch + images.back().patches();
}

at::Tensor Indices(const std::vector<int64_t>& values, at::Device device) {
  return ToDevice(at::tensor(values, at::TensorOptions().dtype(at::kLong)), device);
}

at::Tensor PatchRows(const std::vector<ImageSpan>& images, int64_t class_tokens, at::Device device) {
  std::vector<int64_t> rows;
  rows.reserve(PatchCount(images));
  for (const ImageSpan& image : images) {
    for (int64_t i = 0; i < image.patches(); ++i) rows.push_back(image.first_token + class_tokens + i);
  }
  return Indices(rows, device);
}

at::Tensor ClassRows(const std::vector<ImageSpan>& images, int64_t class_tokens, at::Device device) {
  std::vector<int64_t> rows;
  for (const ImageSpan& image : images) {
    for (int64_t i = 0; i < class_tokens; ++i) rows.push_back(image.first_token + i);
  }
  return Indices(rows, device);
}

}  // namespace planwright::executor::ops
