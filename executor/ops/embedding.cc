// Vocabulary-parallel embedding (docs/model/language_model.md#token-embedding), the merge of image rows into the text
// (docs/model/vision_encoder.md#merge-into-text), and what is added to them behind later layers
// (docs/model/vision_encoder.md#features-of-inner-layers). Tokens are i64 [B,S], values [S,B,H].
//
//   embed_tokens        tokens -> e [S,B,H]; parameter: this rank's rows of the table [V,H]. Ids of other ranks and
//                       image tokens give zeros, so the sum over tp is the embedding
//   embed_tokens_grad   de, tokens -> nothing; adds to the gradient of the table
//   merge_images        e, rows [R,H], tokens -> x [S,B,H], positions i64 [R]. The rows replace the image tokens,
//                       sample by sample; positions = position * B + sample of each row
//   merge_images_grad   dx, positions -> de, drows
//   add_images          x, rows [R,H], tokens -> y, positions. The rows are added at the image tokens. x may also be
//                       the part of a tp coordinate, which lies inside of the cp part
//   add_images_grad     dy, positions -> drows
//
// With cp, e, x, dx and de are this rank's zigzag part of the sequence, while tokens are those of the whole sequence
// and rows those of the whole lane. positions count in the part, and are -1 for a row of another part; its drows are 0.
//
// Values are moved in their dtype; the gradient of the table is added in the dtype of its buffer.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "executor/base/zigzag.h"
#include "executor/ops/embedding_rows.h"
#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// bool, of the shape of `tokens`.
at::Tensor IsImage(const ComputeContext& context, const at::Tensor& tokens) {
  return tokens == context.instruction.integer("image_token");
}

// On a GPU the check runs on the device: the host does not wait, and a mismatch stops the device later.
void CheckImageRows(const at::Tensor& images, int64_t rows) {
  const at::Tensor count = images.sum();
  if (images.is_cuda()) return at::_assert_async(count == rows);
  TORCH_CHECK(count.item<int64_t>() == rows, "the batch has ", count.item<int64_t>(), " image tokens but ", rows,
              " image rows");
}

// Positions of the image tokens in [S,B,H] read as rows, i64 [R], sample by sample. nonzero() would make the host wait
// for their number. It is known here, so a stable sort puts the image tokens first instead, in their order.
at::Tensor PositionsOfImages(const at::Tensor& images, int64_t rows) {
  const int64_t sequence = images.size(1);
  const at::Tensor first =
      std::get<1>(images.reshape({-1}).logical_not().sort(std::optional<bool>(true), 0)).narrow(0, 0, rows);
  return first.remainder(sequence).mul_(images.size(0)).add_(first.div(sequence, "floor"));
}

// The positions of the sequence that this rank has: over cp a zigzag part, and of it the part of the tp coordinate
// where `length` says that there are no more.
at::Tensor PositionsHere(const ComputeContext& context, int64_t sequence, int64_t length,
                         const at::TensorOptions& options) {
  const CallContext& call = context.call;
  at::Tensor here = at::arange(sequence, options);
  if (context.instruction.over_cp()) here = ZigzagPart(here, 0, call.cp_rank, call.cp);
  return length < here.size(0) ? here.narrow(0, call.tp_rank * length, length) : here;
}

// From positions in the whole sequence to positions in `part`, those that this rank has; -1 where it lacks them.
at::Tensor PositionsInPart(const at::Tensor& part, const at::Tensor& positions, int64_t sequence, int64_t samples) {
  at::Tensor local = at::empty({sequence}, positions.options()).fill_(-1);
  local.index_copy_(0, part, at::arange(part.size(0), positions.options()));
  const at::Tensor position = local.index_select(0, positions.div(samples, "floor"));
  return at::where(position < 0, position, position * samples + positions.remainder(samples));
}

// The number of the image row at each token, of the shape of `images`; of other tokens a number in range.
at::Tensor RowOfToken(const at::Tensor& images, int64_t rows) {
  return images.reshape({-1}).cumsum(0).sub_(1).clamp_min_(0).clamp_max_(rows - 1).view_as(images);
}

// [samples, positions] -> [positions, samples, 1]. A copy: LibTorch lays a result as its operands lie, and all values
// of the model would lie by samples.
at::Tensor ByPosition(const at::Tensor& mask) { return mask.t().contiguous().unsqueeze(-1); }

}  // namespace

EmbeddingRows::EmbeddingRows(const ComputeContext& context, const at::Tensor& tokens, int64_t rows) {
  const at::Tensor by_position = tokens.t();
  row = by_position - context.call.tp_rank * rows;
  valid = (row >= 0).logical_and_(row < rows).logical_and_(by_position != context.instruction.integer("image_token"));
}

Tensors RunEmbedTokens(const ComputeContext& context) {
  const at::Tensor& table = context.parameters[0];
  const EmbeddingRows local(context, context.inputs[0], table.size(0));
  const at::Tensor row = local.row.clamp(0, table.size(0) - 1).reshape({-1});
  at::Tensor e = table.index_select(0, row).view({local.row.size(0), local.row.size(1), table.size(1)});
  return {e.masked_fill_(local.valid.logical_not().unsqueeze(-1), 0)};
}

Tensors RunEmbedTokensGrad(const ComputeContext& context) {
  const at::Tensor& gradient = context.gradients[0];
  const int64_t rows = gradient.size(0);
  const EmbeddingRows local(context, context.inputs[1], rows);
  const at::Tensor de =
      AsRows(context.inputs[0].masked_fill(local.valid.logical_not().unsqueeze(-1), 0)).to(gradient.scalar_type());
  // Positions without a row here add zeros. They are spread over the table: many additions to one row would run one
  // after the other.
  const at::Tensor spread = at::arange(de.size(0), local.row.options()).remainder_(rows);
  const at::Tensor row = at::where(local.valid.reshape({-1}), local.row.reshape({-1}), spread);
  // Tokens repeat, so rows get several additions, and their order must be fixed for runs to repeat exactly. index_add_
  // goes through the rows in order on a CPU but not on a GPU; index_put_ sorts them on a GPU.
  if (gradient.is_cuda()) {
    context.gradients[0].index_put_({row}, de, true);
  } else {
    context.gradients[0].index_add_(0, row, de);
  }
  return {};
}

Tensors RunMergeImages(const ComputeContext& context) {
  const at::Tensor& e = context.inputs[0];
  const at::Tensor& rows = context.inputs[1];
  const at::Tensor images = IsImage(context, context.inputs[2]);
  CheckImageRows(images, rows.size(0));
  if (rows.size(0) == 0) return {e, at::empty({0}, context.inputs[2].options())};
  at::Tensor row = RowOfToken(images, rows.size(0));
  at::Tensor positions = PositionsOfImages(images, rows.size(0)), here = images;
  if (context.instruction.over_cp()) {
    const CallContext& call = context.call;
    row = ZigzagPart(row, 1, call.cp_rank, call.cp);
    here = ZigzagPart(images, 1, call.cp_rank, call.cp);
    const at::Tensor part = PositionsHere(context, images.size(1), e.size(0), positions.options());
    positions = PositionsInPart(part, positions, images.size(1), images.size(0));
  }
  const at::Tensor gathered = rows.index_select(0, row.t().reshape({-1})).view(e.sizes());
  return {at::where(ByPosition(here), gathered, e), positions};
}

Tensors RunMergeImagesGrad(const ComputeContext& context) {
  const at::Tensor& dx = context.inputs[0];
  const at::Tensor& positions = context.inputs[1];
  if (!context.instruction.over_cp())
    return {AsRows(dx).index_fill(0, positions, 0).view(dx.sizes()), AsRows(dx).index_select(0, positions)};
  // Rows of other parts share one index behind all others, which is dropped: the number of rows that are here
  // is known on the device only.
  const int64_t rows = dx.size(0) * dx.size(1);
  const at::Tensor absent = positions < 0, index = positions.masked_fill(absent, rows);
  const at::Tensor images =
      at::zeros({rows + 1}, positions.options().dtype(at::kBool)).index_fill_(0, index, true).narrow(0, 0, rows);
  return {dx.masked_fill(images.view({dx.size(0), dx.size(1), 1}), 0),
          AsRows(dx).index_select(0, positions.clamp_min(0)).masked_fill_(absent.unsqueeze(-1), 0)};
}

Tensors RunAddImages(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const at::Tensor& rows = context.inputs[1];
  const at::Tensor images = IsImage(context, context.inputs[2]);
  CheckImageRows(images, rows.size(0));
  if (rows.size(0) == 0) return {x, at::empty({0}, context.inputs[2].options())};
  const int64_t samples = images.size(0), sequence = images.size(1);
  const at::Tensor positions = PositionsOfImages(images, rows.size(0));
  const at::Tensor part = PositionsHere(context, sequence, x.size(0), positions.options());
  const at::Tensor row = RowOfToken(images, rows.size(0)).index_select(1, part), here = images.index_select(1, part);
  const at::Tensor gathered = rows.index_select(0, row.t().reshape({-1})).view(x.sizes());
  return {at::where(ByPosition(here), x + gathered, x), PositionsInPart(part, positions, sequence, samples)};
}

Tensors RunAddImagesGrad(const ComputeContext& context) {
  const at::Tensor& positions = context.inputs[1];
  const at::Tensor absent = positions < 0;
  return {AsRows(context.inputs[0]).index_select(0, positions.clamp_min(0)).masked_fill_(absent.unsqueeze(-1), 0)};
}

}  // namespace planwright::executor::ops
