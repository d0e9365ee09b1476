// Row moves of the encoder's head: drop the class tokens, fold factor x factor patches into one image token (facts
// 3.9).
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "executor/ops/handler.h"
#include "executor/ops/vision_images.h"

namespace planwright::executor::ops {
namespace {

// The patch of each (output token, dh, dw), in that order: token (i, j) holds patch (factor i + dh, factor j + dw).
at::Tensor ShuffledPatches(const at::Tensor& image_grid, int64_t factor, at::Device device) {
  std::vector<int64_t> order;
  for (const ImageSpan& image : ImageSpans(image_grid, 0)) {
    TORCH_CHECK(image.rows % factor == 0 && image.columns % factor == 0, "pixel shuffle by ", factor, " of a grid of ",
                image.rows, " x ", image.columns, " patches");
    for (int64_t i = 0; i < image.rows; i += factor) {
      for (int64_t j = 0; j < image.columns; j += factor) {
        for (int64_t dh = 0; dh < factor; ++dh) {
          for (int64_t dw = 0; dw < factor; ++dw)
            order.push_back(image.first_patch + (i + dh) * image.columns + j + dw);
        }
      }
    }
  }
  return Indices(order, device);
}

}  // namespace

Tensors RunDropClassTokens(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const int64_t classes = context.instruction.integer("class_tokens");
  return {x.index_select(0, PatchRows(ImageSpans(context.inputs[1], classes), classes, x.device()))};
}

Tensors RunDropClassTokensGrad(const ComputeContext& context) {
  const at::Tensor& d = context.inputs[0];
  const int64_t classes = context.instruction.integer("class_tokens");
  const std::vector<ImageSpan> images = ImageSpans(context.inputs[1], classes);
  const int64_t tokens = d.size(0) + static_cast<int64_t>(images.size()) * classes;
  return {at::zeros({tokens, d.size(1)}, d.options()).index_copy_(0, PatchRows(images, classes, d.device()), d)};
}

Tensors RunPixelShuffle(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const int64_t factor = context.instruction.integer("factor"), folded = factor * factor;
  const at::Tensor order = ShuffledPatches(context.inputs[1], factor, x.device());
  return {x.index_select(0, order).reshape({x.size(0) / folded, folded * x.size(1)})};
}

Tensors RunPixelShuffleGrad(const ComputeContext& context) {
  const at::Tensor& d = context.inputs[0];
  const int64_t factor = context.instruction.integer("factor"), folded = factor * factor;
  const at::Tensor order = ShuffledPatches(context.inputs[1], factor, d.device());
  const at::Tensor rows = d.reshape({d.size(0) * folded, d.size(1) / folded});
  return {at::empty(rows.sizes(), rows.options()).index_copy_(0, order, rows)};
}

}  // namespace planwright::executor::ops
