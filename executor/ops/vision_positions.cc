// Position embedding and class tokens of the vision encoder (docs/model/vision_encoder.md#position-embedding,
// docs/model/vision_encoder.md#class-tokens).
//
//   position_and_class        e [P,h], image_grid i64 [n,2] host, image_ids i64 [n,2] host -> x [N,h]
//                             parameters pos_embed [1,side^2,h], cls_token [c,h]; P and N of this rank's part with cp
//   position_and_class_grad   dx [N,h], image_grid, image_ids -> de [P,h]; adds to the gradients of both parameters
//
// The embedding of a patch is a weighted sum of four rows of the table (table_sums.h), which is rounded to the dtype of
// e. The backward reads no values of the forward: it computes the weights again.
// With `crop` the draws are keyed by the data seed and counted by sample and image, so they are the same again, on
// every rank.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "executor/ops/handler.h"
#include "executor/ops/table_sums.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/vision_images.h"
#include "planner/base/random/philox.h"

namespace planwright::executor::ops {
namespace {

// The draws of one image: they depend on its numbers only, not on rank or microbatch.
CropDraws DrawsOf(const Philox& stream, int64_t sample, int64_t image) {
  constexpr int64_t kImagesOfSample = 4096, kDraws = 4;
  TORCH_CHECK(sample >= 0 && image >= 0 && image < kImagesOfSample, "image ", image, " of sample ", sample,
              ": a sample can have ", kImagesOfSample, " images at most");
  const auto first = static_cast<uint64_t>((sample * kImagesOfSample + image) * kDraws);
  return {.scale = stream.Uniform(first),
          .aspect = stream.Uniform(first + 1),
          .x = stream.Uniform(first + 2),
          .y = stream.Uniform(first + 3)};
}

// Images whose class tokens this part has.
int64_t ImagesBegun(const std::vector<ImageSpan>& images) {
  return std::count_if(images.begin(), images.end(), [](const ImageSpan& image) { return image.first_row == 0; });
}

// The positions of a patch are those in its whole image, of which a part may have a few rows only.
PositionTaps FindTaps(const ComputeContext& context, const std::vector<ImageSpan>& images, int64_t width) {
  const int64_t side = context.instruction.integer("side");
  const bool crop = context.instruction.integer("crop") != 0;
  const at::Tensor &grids = context.inputs[1], &ids = context.inputs[2];
  TORCH_CHECK(ids.is_cpu() && ids.scalar_type() == at::kLong && ids.size(0) == grids.size(0),
              "image_ids must be i64 [images, 2] in host memory, one row for each row of image_grid");
  const auto grid = grids.accessor<int64_t, 2>(), id = ids.accessor<int64_t, 2>();
  const Philox stream(static_cast<uint64_t>(context.call.plan->data.seed), "position_crop");
  PositionTaps taps;
  for (const ImageSpan& image : images) {
    const int64_t i = image.image, rows = grid[i][0];
    const size_t first = taps.row.size();
    if (crop)
      AppendCroppedTaps(side, rows, image.columns, DrawsOf(stream, id[i][0], id[i][1]), taps);
    else
      AppendResizedTaps(side, rows, image.columns, width, taps);
    KeepRowsOfPart(first, image, taps);
  }
  return taps;
}

}  // namespace

Tensors RunPositionAndClass(const ComputeContext& context) {
  const at::Tensor &e = context.inputs[0], &classes = context.parameters[1];
  const at::Tensor table = context.parameters[0].reshape({-1, e.size(1)});
  const int64_t class_tokens = classes.size(0);
  const std::vector<ImageSpan> images = ImageSpans(context.inputs[1], class_tokens, LanePart::Of(context));
  TORCH_CHECK(e.size(0) == PatchCount(images), "e has ", e.size(0), " rows, but image_grid says ", PatchCount(images),
              " patches");
  const at::Tensor positions = TableSums(FindTaps(context, images, e.size(1)), e).Of(table);
  const at::Tensor x = at::empty({TokenCount(images), e.size(1)}, e.options());
  x.index_copy_(0, PatchRows(images, e.device()), e + positions.to(e.scalar_type()));
  x.index_copy_(0, ClassRows(images, e.device()), classes.to(e.scalar_type()).repeat({ImagesBegun(images), 1}));
  return {x};
}

Tensors RunPositionAndClassGrad(const ComputeContext& context) {
  const at::Tensor &dx = context.inputs[0], &d_classes = context.gradients[1];
  const at::Tensor d_table = context.gradients[0].view({-1, dx.size(1)});
  const int64_t class_tokens = d_classes.size(0);
  const std::vector<ImageSpan> images = ImageSpans(context.inputs[1], class_tokens, LanePart::Of(context));
  const at::Tensor de = dx.index_select(0, PatchRows(images, dx.device()));
  TableSums(FindTaps(context, images, dx.size(1)), dx).AddTransposed(de, d_table);
  const at::Tensor d_class_rows = dx.index_select(0, ClassRows(images, dx.device())).to(WideType(dx));
  d_classes.add_(d_class_rows.view({ImagesBegun(images), class_tokens, dx.size(1)}).sum(0));
  return {de};
}

}  // namespace planwright::executor::ops
