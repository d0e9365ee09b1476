// How many rows each part of a lane has, and one part of rows that a rank has whole
// (docs/layouts/sequence.md#encoder). All counts stay in host memory: they size messages.
//
//   deal_bands   image_grid i64 [n,2] host -> token_counts, row_counts: i64 [cp] host, N and R of every part
//   slice_rows   x, counts i64 [n] host -> the rows of this rank's coordinate
#include <ATen/ops/empty.h>

#include <numeric>

#include "executor/ops/handler.h"
#include "executor/ops/vision_images.h"

namespace planwright::executor::ops {
Tensors RunDealBands(const ComputeContext& context) {
  const int64_t class_tokens = ClassTokensOf(context.instruction);
  LanePart part = LanePart::Of(context);
  const at::Tensor token_counts = at::empty({part.cp}, at::TensorOptions().dtype(at::kLong)),
                   row_counts = at::empty({part.cp}, at::TensorOptions().dtype(at::kLong));
  for (part.coordinate = 0; part.coordinate < part.cp; ++part.coordinate) {
    const std::vector<ImageSpan> images = ImageSpans(context.inputs[0], class_tokens, part);
    token_counts.data_ptr<int64_t>()[part.coordinate] = TokenCount(images);
    row_counts.data_ptr<int64_t>()[part.coordinate] = PatchCount(images) / (part.factor * part.factor);
  }
  return {token_counts, row_counts};
}

Tensors RunSliceRows(const ComputeContext& context) {
  const at::Tensor &x = context.inputs[0], &counts = context.inputs[1];
  const int64_t coordinate = context.call.CoordinateAlong(context.instruction.text("axis")).coordinate;
  TORCH_CHECK(counts.is_cpu() && counts.scalar_type() == at::kLong && counts.is_contiguous(),
              "row counts must be i64 in host memory");
  const int64_t *count = counts.const_data_ptr<int64_t>(), *end = count + counts.numel();
  TORCH_CHECK(coordinate < counts.numel() && std::accumulate(count, end, int64_t{0}) == x.size(0), "counts of ",
              counts.numel(), " ranks do not fit ", x.size(0), " rows at coordinate ", coordinate);
  const int64_t first = std::accumulate(count, count + coordinate, int64_t{0});
  // A copy: a view would keep the memory of the whole tensor alive as long as the part, which the plan does not count.
  return {x.narrow(0, first, count[coordinate]).clone(at::MemoryFormat::Contiguous)};
}

}  // namespace planwright::executor::ops
