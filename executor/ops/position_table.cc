// Positions of an encoder whose table is resized to each image (docs/model/qwen_vit.md#position-table), and the patches
// of still images for an embedding that is made for films (docs/model/qwen_vit.md#patches).
//
//   repeat_frames        patches [...,3 p] -> [...,3 frames p]: each channel `frames` times, one after the other
//   add_positions        e [P,h], image_grid i64 [n,2] host | table [side^2,h] -> x [P,h]
//   add_positions_grad   dx, image_grid -> nothing; adds to the gradient of the table
//
// Sums over rows of the table are wide (table_sums.h) and rounded once, to the dtype of e. P is of this rank's part
// with cp.
#include <ATen/TensorOperators.h>

#include "executor/ops/handler.h"
#include "executor/ops/table_sums.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/vision_images.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kChannels = 3;

// Of the rows [P,h], which are those of the images.
TableSums SumsFor(const ComputeContext& context, const at::Tensor& rows) {
  const int64_t side = context.instruction.integer("side");
  const at::Tensor& grids = context.inputs[1];
  const std::vector<ImageSpan> images = ImageSpans(grids, 0, LanePart::Of(context));
  TORCH_CHECK(rows.size(0) == PatchCount(images), "there are ", rows.size(0), " rows, but image_grid says ",
              PatchCount(images), " patches");
  const auto grid = grids.accessor<int64_t, 2>();
  PositionTaps taps;
  for (const ImageSpan& image : images) {
    const size_t first = taps.row.size();
    AppendAlignedTaps(side, grid[image.image][0], image.columns, taps);
    KeepRowsOfPart(first, image, taps);
  }
  return {std::move(taps), rows};
}

}  // namespace

Tensors RunRepeatFrames(const ComputeContext& context) {
  const at::Tensor rows = AsRows(context.inputs[0]);
  const int64_t frames = context.instruction.integer("frames"), pixels = rows.size(1) / kChannels;
  TORCH_CHECK(rows.size(1) == kChannels * pixels, "patches of ", rows.size(1), " values have no ", kChannels,
              " channels");
  const at::Tensor vectors = InVectors(rows, pixels);
  const int64_t size = vectors.size(1) / kChannels;
  return {vectors.view({rows.size(0), kChannels, 1, size})
              .expand({rows.size(0), kChannels, frames, size})
              .reshape({rows.size(0), kChannels * frames * size})
              .view(rows.scalar_type())
              .view(WithWidth(context.inputs[0], kChannels * frames * pixels))};
}

Tensors RunAddPositions(const ComputeContext& context) {
  const at::Tensor& e = context.inputs[0];
  return {e + SumsFor(context, e).Of(context.parameters[0]).to(e.scalar_type())};
}

Tensors RunAddPositionsGrad(const ComputeContext& context) {
  const at::Tensor& dx = context.inputs[0];
  SumsFor(context, dx).AddTransposed(dx, context.gradients[0]);
  return {};
}

}  // namespace planwright::executor::ops
