#include "executor/ops/vision_images.h"

#include <array>

#include "planner/plan/image_bands.h"

namespace planwright::executor::ops {
namespace {

std::vector<std::array<int64_t, 2>> GridsOf(const at::Tensor& image_grid) {
  TORCH_CHECK(
      image_grid.dim() == 2 && image_grid.size(1) == 2 && image_grid.scalar_type() == at::kLong && image_grid.is_cpu(),
      "image_grid must be i64 [images, 2] in host memory, not ", image_grid.toString(), " ", image_grid.sizes());
  std::vector<std::array<int64_t, 2>> grids;
  const auto grid = image_grid.accessor<int64_t, 2>();
  for (int64_t i = 0; i < image_grid.size(0); ++i) {
    TORCH_CHECK(grid[i][0] > 0 && grid[i][1] > 0, "image ", i, " has a grid of ", grid[i][0], " x ", grid[i][1],
                " patches");
    grids.push_back({grid[i][0], grid[i][1]});
  }
  return grids;
}

// What the part has of the images.
std::vector<ImageRows> RowsOfPart(const std::vector<std::array<int64_t, 2>>& grids, const LanePart& part) {
  for (const auto& [rows, columns] : grids) {
    TORCH_CHECK(rows % part.factor == 0 && columns % part.factor == 0, "bands of ", part.factor,
                " rows cannot divide an image of ", rows, " x ", columns, " patches");
  }
  return DealBands(grids, part.factor, part.cp).at(part.coordinate);
}

}  // namespace

LanePart LanePart::Of(const ComputeContext& context) {
  const int64_t* cp = context.instruction.FindInteger("cp");
  if (cp == nullptr) return {};
  TORCH_CHECK(*cp == context.call.cp, "cp is ", *cp, " in the instruction, but ", context.call.cp, " in the grid");
  return {.cp = *cp, .coordinate = context.call.cp_rank, .factor = context.instruction.integer("factor")};
}

int64_t ClassTokensOf(const Instruction& instruction) {
  const int64_t* class_tokens = instruction.FindInteger("class_tokens");
  return class_tokens == nullptr ? 0 : *class_tokens;
}

std::vector<ImageSpan> ImageSpans(const at::Tensor& image_grid, int64_t class_tokens, const LanePart& part) {
  const std::vector<std::array<int64_t, 2>> grids = GridsOf(image_grid);
  std::vector<ImageSpan> images;
  int64_t patch = 0, token = 0;
  for (const ImageRows& rows : RowsOfPart(grids, part)) {
    images.push_back({.image = rows.image,
                      .rows = rows.count,
                      .columns = grids[rows.image][1],
                      .first_row = rows.first,
                      .class_tokens = rows.has_class_tokens() ? class_tokens : 0,
                      .first_patch = patch,
                      .first_token = token});
    patch += images.back().patches();
    token += images.back().tokens();
  }
  return images;
}

int64_t PatchCount(const std::vector<ImageSpan>& images) {
  return images.empty() ? 0 : images.back().first_patch + images.back().patches();
}

int64_t TokenCount(const std::vector<ImageSpan>& images) {
  return images.empty() ? 0 : images.back().first_token + images.back().tokens();
}

at::Tensor PatchRows(const std::vector<ImageSpan>& images, at::Device device) {
  std::vector<int64_t> rows;
  rows.reserve(PatchCount(images));
  for (const ImageSpan& image : images) {
    for (int64_t i = 0; i < image.patches(); ++i) rows.push_back(image.first_token + image.class_tokens + i);
  }
  return Indices(rows, device);
}

at::Tensor ClassRows(const std::vector<ImageSpan>& images, at::Device device) {
  std::vector<int64_t> rows;
  for (const ImageSpan& image : images) {
    for (int64_t i = 0; i < image.class_tokens; ++i) rows.push_back(image.first_token + i);
  }
  return Indices(rows, device);
}

}  // namespace planwright::executor::ops
