// Moves of rows at the output of the vision encoder (docs/model/vision_encoder.md#output). Rows keep their dtype. The
// backward reads only image_grid (i64 [n,2], host). With cp the rows are those of this rank's part.
//
//   drop_class_tokens   x [N,h], image_grid -> [P,h]; in the backward the dropped rows get zeros
//   pixel_shuffle       x [P,h], image_grid -> [P/factor^2, factor^2 h]: squares of patches become one image token each
#include <ATen/ops/zeros.h>

#include "executor/ops/handler.h"
#include "executor/ops/vision_images.h"

namespace planwright::executor::ops {
namespace {

// Which patch goes where, in the order (image token, dh, dw): token (i, j) gets the patches (factor i + dh, factor j +
// dw).
std::vector<int64_t> ShuffledPatches(const ComputeContext& context, int64_t factor) {
  std::vector<int64_t> order;
  for (const ImageSpan& image : ImageSpans(context.inputs[1], 0, LanePart::Of(context))) {
    TORCH_CHECK(image.rows % factor == 0 && image.columns % factor == 0, "pixel shuffle by ", factor,
                " cannot divide an image of ", image.rows, " x ", image.columns, " patches");
    for (int64_t i = 0; i < image.rows; i += factor) {
      for (int64_t j = 0; j < image.columns; j += factor) {
        for (int64_t dh = 0; dh < factor; ++dh) {
          for (int64_t dw = 0; dw < factor; ++dw)
            order.push_back(image.first_patch + (i + dh) * image.columns + j + dw);
        }
      }
    }
  }
  return order;
}

std::vector<ImageSpan> PartOf(const ComputeContext& context) {
  return ImageSpans(context.inputs[1], ClassTokensOf(context.instruction), LanePart::Of(context));
}

}  // namespace

Tensors RunDropClassTokens(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  return {x.index_select(0, PatchRows(PartOf(context), x.device()))};
}

Tensors RunDropClassTokensGrad(const ComputeContext& context) {
  const at::Tensor& d = context.inputs[0];
  const std::vector<ImageSpan> images = PartOf(context);
  const at::Tensor dx = at::zeros({TokenCount(images), d.size(1)}, d.options());
  return {dx.index_copy_(0, PatchRows(images, d.device()), d)};
}

Tensors RunPixelShuffle(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const int64_t factor = context.instruction.integer("factor"), folded = factor * factor;
  const at::Tensor order = Indices(ShuffledPatches(context, factor), x.device());
  return {x.index_select(0, order).reshape({x.size(0) / folded, folded * x.size(1)})};
}

Tensors RunPixelShuffleGrad(const ComputeContext& context) {
  const at::Tensor& d = context.inputs[0];
  const int64_t factor = context.instruction.integer("factor"), folded = factor * factor;
  // Every patch takes its row: on GPUs that is faster than to write rows where they belong.
  const std::vector<int64_t> order = ShuffledPatches(context, factor);
  TORCH_CHECK(d.size(0) * folded == static_cast<int64_t>(order.size()), "there are ", d.size(0),
              " image tokens, but image_grid says ", order.size(), " patches");
  std::vector<int64_t> row_of(order.size());
  for (size_t row = 0; row < order.size(); ++row) row_of[static_cast<size_t>(order[row])] = static_cast<int64_t>(row);
  const at::Tensor rows = d.reshape({d.size(0) * folded, d.size(1) / folded});
  return {rows.index_select(0, Indices(row_of, d.device()))};
}

}  // namespace planwright::executor::ops
