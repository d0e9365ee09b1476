// Where the images of a packed batch lie (docs/model/vision_encoder.md#class-tokens). P: rows of patches, image after
// image, each image row by row. N: the same with each image's class tokens before its patches. With context parallelism
// a rank has a part of these rows (planner/plan/image_bands.h), and an image may lie on several ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {

// An image, or what one part has of it.
struct ImageSpan {
  int64_t image = 0;              // index among the images of the lane
  int64_t rows = 0, columns = 0;  // of patches
  int64_t first_row = 0;          // of these rows in the image
  int64_t class_tokens = 0;       // in front of its patches; 0 where another part has the beginning of the image
  int64_t first_patch = 0;        // index among the P rows
  int64_t first_token = 0;        // index of its first row among the N rows
  int64_t patches() const { return rows * columns; }
  int64_t tokens() const { return class_tokens + patches(); }
};

// Which part of the lane's rows: that of one cp coordinate. By default the part is the lane.
struct LanePart {
  int64_t cp = 1, coordinate = 0;
  int64_t factor = 1;  // the pixel shuffle, which is the height of a band

  // That of the calling rank, by the attributes of its instruction.
  static LanePart Of(const ComputeContext& context);
};

// Class tokens in front of the patches of an image, which an instruction does not say where there are none.
int64_t ClassTokensOf(const Instruction& instruction);

// image_grid: i64 [n,2] in host memory, rows and columns of patches of each image of the lane; n may be 0. c10::Error
// if it is not that. Images of which the part has nothing are left out.
std::vector<ImageSpan> ImageSpans(const at::Tensor& image_grid, int64_t class_tokens, const LanePart& part = {});

// P and N.
int64_t PatchCount(const std::vector<ImageSpan>& images);
int64_t TokenCount(const std::vector<ImageSpan>& images);

// Which of the N rows hold patches, i64 [P], and which hold class tokens, i64 [N - P]; on `device`.
at::Tensor PatchRows(const std::vector<ImageSpan>& images, at::Device device);
at::Tensor ClassRows(const std::vector<ImageSpan>& images, at::Device device);

}  // namespace planwright::executor::ops
