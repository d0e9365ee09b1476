// Attention of the vision encoder, inside each image of a packed batch, not causal, with scale 1/sqrt(d)
// (docs/model/vision_encoder.md#attention). N packed rows, each image's class tokens first; heads are those of this
// rank.
//
//   packed_attention        qkv [N,3 heads d], columns [all q | all k | all v]; image_grid i64 [n,2] host
//                           -> a [N,heads d], lse [heads,N]
//   packed_attention_grad   da, qkv, a, lse, image_grid -> dqkv
//
// With cp a rank has the queries of its part of the lane, and the keys of the whole lane:
//
//   packed_attention        q [N,heads d], kv [N of the lane,2 heads d], columns [all k | all v]; image_grid
//                           -> a [N,heads d], lse [heads,N]
//   packed_attention_grad   da, q, kv, a, lse, image_grid -> dq, dkv; dkv: the term of this part's queries
//
// The plain form computes whole score matrices, one image at a time, in fp32 (fp64 for fp64). a and dqkv have the dtype
// of qkv, lse is fp32 (fp64). The backward reads qkv, a and lse, and computes the probabilities again as
// exp(score - lse).
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "executor/ops/packed_attention.h"

namespace planwright::executor::ops {

PackedAttention::PackedAttention(const ComputeContext& context, size_t first, size_t grid)
    : h(context.instruction), data(context.call.plan->data), parted(LanePart::Of(context).cp > 1),
      x(parted ? Projections(h, Checked(context.inputs[first], 1), Checked(context.inputs[first + 1], 2))
               : Projections(h, Checked(context.inputs[first], 3))) {
  const at::Tensor& grids = context.inputs[grid];
  const std::vector<ImageSpan> lane = ImageSpans(grids, h.class_tokens),
                               part = ImageSpans(grids, h.class_tokens, LanePart::Of(context));
  TORCH_CHECK(x.q.size(0) == TokenCount(part) && x.k.size(0) == TokenCount(lane), "packed attention over ", lane.size(),
              " images needs ", TokenCount(part), " queries and ", TokenCount(lane), " keys, not ", x.q.size(0),
              " and ", x.k.size(0));
  for (const ImageSpan& image : part) {
    const ImageSpan& whole = lane[image.image];
    images.push_back({image.first_token, image.tokens(), whole.first_token, whole.tokens()});
  }
}

const at::Tensor& PackedAttention::Checked(const at::Tensor& projection, int64_t parts) const {
  TORCH_CHECK(projection.dim() == 2 && projection.size(1) == parts * h.width(), "packed attention of ", h.heads,
              " heads needs a projection of ", parts * h.width(), " columns, not ", projection.sizes());
  return projection;
}

Tensors RunPackedAttention(const ComputeContext& context) {
  const PackedAttention attention(context, 0, context.inputs.size() - 1);
  const PackedHeads& h = attention.h;
  const at::Tensor &q = attention.x.q, a = at::empty({q.size(0), h.width()}, q.options());
  // Wide: an lse rounded to bf16 would scale whole rows of the probabilities that the backward computes from it.
  const at::Tensor lse = at::empty({h.heads, q.size(0)}, q.options().dtype(WideType(q)));
  for (const AttendedImage& image : attention.images) {
    const at::Tensor keys = h.Split(image.Keys(attention.x.k)), values = h.Split(image.Keys(attention.x.v));
    const at::Tensor scores = h.Split(image.Queries(q)).matmul(keys.transpose(1, 2)) * h.scale();
    const at::Tensor normaliser = scores.logsumexp(at::IntArrayRef{2}, true);
    h.Join((scores - normaliser).exp().matmul(values), image.Queries(a));
    lse.narrow(1, image.first_query, image.queries).copy_(normaliser.squeeze(2));
  }
  return {a, lse};
}

Tensors RunPackedAttentionGrad(const ComputeContext& context) {
  const PackedAttention attention(context, 1, context.inputs.size() - 1);
  const size_t own = attention.parted ? 3 : 2;
  const at::Tensor &da = context.inputs[0], &a = context.inputs[own], &lse = context.inputs[own + 1];
  const PackedHeads& h = attention.h;
  // With cp, images that this part has nothing of get no term. Without, every row is written.
  Tensors gradients;
  for (size_t i = 1; i < own; ++i)
    gradients.push_back(attention.parted ? at::zeros_like(context.inputs[i]) : at::empty_like(context.inputs[i]));
  const Projections d = attention.parted ? Projections(h, gradients[0], gradients[1]) : Projections(h, gradients[0]);
  for (const AttendedImage& image : attention.images) {
    const at::Tensor q = h.Split(image.Queries(attention.x.q)), k = h.Split(image.Keys(attention.x.k)),
                     v = h.Split(image.Keys(attention.x.v));
    const at::Tensor d_out = h.Split(image.Queries(da)), out = h.Split(image.Queries(a));
    const at::Tensor normaliser = lse.narrow(1, image.first_query, image.queries).unsqueeze(2).to(q.scalar_type());
    const at::Tensor p = (q.matmul(k.transpose(1, 2)) * h.scale() - normaliser).exp();
    const at::Tensor ds = p * (d_out.matmul(v.transpose(1, 2)) - (d_out * out).sum(-1, true)) * h.scale();
    h.Join(ds.matmul(k), image.Queries(d.q));
    h.Join(ds.transpose(1, 2).matmul(q), image.Keys(d.k));
    h.Join(p.transpose(1, 2).matmul(d_out), image.Keys(d.v));
  }
  return gradients;
}

}  // namespace planwright::executor::ops
