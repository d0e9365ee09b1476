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
// The plain form computes whole score matrices, one image at a time, in fp32 (fp64 for fp64). On GPUs bf16 goes through
// kernels that take all images at once; a test compares both with the plain form. If all images of the run have one
// size, without cp, it is cuDNN's (cudnn_attention.h), with the images as a batch: one program for each number of
// images. Otherwise it is LibTorch's flash kernel for sequences of different lengths. a and dqkv have the dtype of qkv,
// lse is fp32 (fp64). The backward reads qkv, a and lse, and computes the probabilities again as exp(score - lse).
#include <ATen/TensorOperators.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "executor/ops/cudnn_attention.h"
#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/vision_images.h"
#include "executor/tensors.h"
#include "planner/plan/sample_images.h"

namespace planwright::executor::ops {
namespace {

struct PackedHeads {
  int64_t heads, head_dim, class_tokens;
  explicit PackedHeads(const Instruction& op)
      : heads(op.integer("heads")), head_dim(op.integer("head_dim")), class_tokens(op.integer("class_tokens")) {}

  int64_t width() const { return heads * head_dim; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(head_dim)); }

  // [L, heads * head_dim] as [heads, L, head_dim], wide.
  at::Tensor Split(const at::Tensor& x) const {
    return x.reshape({x.size(0), heads, head_dim}).transpose(0, 1).to(WideType(x));
  }
  // [heads, L, head_dim] into `into` [L, heads * head_dim].
  void Join(const at::Tensor& x, const at::Tensor& into) const {
    into.copy_(x.transpose(0, 1).reshape({x.size(1), width()}));
  }
};

// The rows of one image among the queries and among the keys.
struct AttendedImage {
  int64_t first_query, queries, first_key, keys;

  at::Tensor Queries(const at::Tensor& x) const { return x.narrow(0, first_query, queries); }
  at::Tensor Keys(const at::Tensor& x) const { return x.narrow(0, first_key, keys); }
};

// The operands of both forms, and their gradients, as views: q, k and v [rows, heads * head_dim]. With cp 1 they are
// columns of one tensor.
struct Projections {
  at::Tensor q, k, v;

  Projections(const PackedHeads& h, const at::Tensor& qkv)
      : q(qkv.narrow(1, 0, h.width())), k(qkv.narrow(1, h.width(), h.width())),
        v(qkv.narrow(1, 2 * h.width(), h.width())) {}
  Projections(const PackedHeads& h, at::Tensor queries, const at::Tensor& kv)
      : q(std::move(queries)), k(kv.narrow(1, 0, h.width())), v(kv.narrow(1, h.width(), h.width())) {}
};

// What both directions read: the projections begin at input `first`, and image_grid is input `grid`.
struct Attention {
  PackedHeads h;
  const DataPlan& data;
  bool parted;  // by cp
  std::vector<AttendedImage> images;
  Projections x;

  Attention(const ComputeContext& context, size_t first, size_t grid)
      : h(context.instruction), data(context.call.plan->data), parted(LanePart::Of(context).cp > 1),
        x(parted ? Projections(h, Checked(context.inputs[first], 1), Checked(context.inputs[first + 1], 2))
                 : Projections(h, Checked(context.inputs[first], 3))) {
    const at::Tensor& grids = context.inputs[grid];
    const std::vector<ImageSpan> lane = ImageSpans(grids, h.class_tokens),
                                 part = ImageSpans(grids, h.class_tokens, LanePart::Of(context));
    TORCH_CHECK(x.q.size(0) == TokenCount(part) && x.k.size(0) == TokenCount(lane), "packed attention over ",
                lane.size(), " images needs ", TokenCount(part), " queries and ", TokenCount(lane), " keys, not ",
                x.q.size(0), " and ", x.k.size(0));
    for (const ImageSpan& image : part) {
      const ImageSpan& whole = lane[image.image];
      images.push_back({image.first_token, image.tokens(), whole.first_token, whole.tokens()});
    }
  }

  const at::Tensor& Checked(const at::Tensor& projection, int64_t parts) const {
    TORCH_CHECK(projection.dim() == 2 && projection.size(1) == parts * h.width(), "packed attention of ", h.heads,
                " heads needs a projection of ", parts * h.width(), " columns, not ", projection.sizes());
    return projection;
  }

  bool TakesFlash() const { return x.q.is_cuda() && x.q.scalar_type() == at::kBFloat16 && x.q.size(0) > 0; }

  // The images as a batch of sequences of one length, views of the projections; nothing unless cuDNN's kernel takes it.
  std::optional<FlashOperands> CudnnBatch() const {
    if (!TakesFlash() || parted || !OneImageSize(data)) return std::nullopt;
    for (const AttendedImage& image : images)
      if (image.queries != images[0].queries) return std::nullopt;
    const FlashOperands batch = {Sequences(x.q), Sequences(x.k), Sequences(x.v), h.scale()};
    return TakesCudnn(batch) ? std::optional<FlashOperands>(batch) : std::nullopt;
  }
  // [N, heads * head_dim] as [images, rows of an image, heads, head_dim]
  at::Tensor Sequences(const at::Tensor& rows) const {
    return rows.view({static_cast<int64_t>(images.size()), images[0].queries, h.heads, h.head_dim});
  }

  // The keys of the images that this part has rows of: consecutive rows.
  at::Tensor KeysOfPart(const at::Tensor& all) const {
    const int64_t first = images.front().first_key;
    return all.narrow(0, first, images.back().first_key + images.back().keys - first);
  }
};

// Where the flash kernel finds the rows of each image: i32 [n + 1] on the device, the first row of each, and behind
// them their number.
struct PackedSequences {
  at::Tensor queries, keys;
  int64_t longest_queries = 0, longest_keys = 0;

  explicit PackedSequences(const Attention& attention) {
    std::vector<int32_t> first_query = {0}, first_key = {0};
    for (const AttendedImage& image : attention.images) {
      first_query.push_back(first_query.back() + static_cast<int32_t>(image.queries));
      first_key.push_back(first_key.back() + static_cast<int32_t>(image.keys));
      longest_queries = std::max(longest_queries, image.queries);
      longest_keys = std::max(longest_keys, image.keys);
    }
    queries = ToDevice(at::tensor(first_query, at::kInt), attention.x.q.device());
    keys = ToDevice(at::tensor(first_key, at::kInt), attention.x.q.device());
  }
};

// [N, heads * head_dim] <-> [N, heads, head_dim]
at::Tensor SplitHeads(const at::Tensor& x, const PackedHeads& h) { return x.unflatten(1, {h.heads, h.head_dim}); }
at::Tensor JoinHeads(const at::Tensor& x) { return x.reshape({x.size(0), -1}); }

// [images, rows of an image, heads, head_dim] -> [N, heads * head_dim]
at::Tensor JoinImages(const at::Tensor& x) { return x.reshape({x.size(0) * x.size(1), x.size(2) * x.size(3)}); }

Tensors BatchForward(const FlashOperands& batch) {
  const FlashResult result = CudnnForward(batch, /*causal=*/false);
  return {JoinImages(result.a), result.lse.transpose(0, 1).reshape({batch.q.size(2), -1})};
}

Tensors BatchBackward(const Attention& attention, const FlashOperands& batch, const at::Tensor& da, const at::Tensor& a,
                      const at::Tensor& lse) {
  const int64_t images = batch.q.size(0), rows = batch.q.size(1), heads = batch.q.size(2);
  const FlashResult forward = {attention.Sequences(a.contiguous()), lse.view({heads, images, rows}).transpose(0, 1)};
  const FlashGradients d = CudnnBackward(batch, /*causal=*/false, attention.Sequences(da.contiguous()), forward);
  return {at::cat({JoinImages(d.dq), JoinImages(d.dk), JoinImages(d.dv)}, 1)};
}

Tensors FlashForward(const Attention& attention) {
  const PackedSequences s(attention);
  const PackedHeads& h = attention.h;
  const auto result = at::_flash_attention_forward(
      SplitHeads(attention.x.q, h), SplitHeads(attention.KeysOfPart(attention.x.k), h),
      SplitHeads(attention.KeysOfPart(attention.x.v), h), s.queries, s.keys, s.longest_queries, s.longest_keys,
      /*dropout_p=*/0, /*is_causal=*/false, /*return_debug_mask=*/false, h.scale());
  return {JoinHeads(std::get<0>(result)), std::get<1>(result)};
}

Tensors FlashBackward(const Attention& attention, const at::Tensor& da, const at::Tensor& a, const at::Tensor& lse) {
  const PackedSequences s(attention);
  const PackedHeads& h = attention.h;
  const at::Tensor &q = attention.x.q, keys = attention.KeysOfPart(attention.x.k),
                   values = attention.KeysOfPart(attention.x.v);
  // The kernel takes the random state of dropout, but does not read it where there is none.
  const at::Tensor no_dropout = at::empty({2}, q.options().dtype(at::kUInt64));
  const auto [dq, dk, dv] =
      at::_flash_attention_backward(SplitHeads(da, h), SplitHeads(q, h), SplitHeads(keys, h), SplitHeads(values, h),
                                    SplitHeads(a, h), lse, s.queries, s.keys, s.longest_queries, s.longest_keys,
                                    /*dropout_p=*/0, /*is_causal=*/false, no_dropout, no_dropout, h.scale());
  if (!attention.parted) return {at::cat({JoinHeads(dq), JoinHeads(dk), JoinHeads(dv)}, 1)};
  const at::Tensor dkv = at::zeros({attention.x.k.size(0), 2 * h.width()}, q.options());
  attention.KeysOfPart(dkv).copy_(at::cat({JoinHeads(dk), JoinHeads(dv)}, 1));
  return {JoinHeads(dq), dkv};
}

}  // namespace

Tensors RunPackedAttention(const ComputeContext& context) {
  const Attention attention(context, 0, context.inputs.size() - 1);
  const PackedHeads& h = attention.h;
  if (const auto batch = attention.CudnnBatch()) return BatchForward(*batch);
  if (attention.TakesFlash()) return FlashForward(attention);
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
  const Attention attention(context, 1, context.inputs.size() - 1);
  const size_t own = attention.parted ? 3 : 2;
  const at::Tensor &da = context.inputs[0], &a = context.inputs[own], &lse = context.inputs[own + 1];
  const PackedHeads& h = attention.h;
  if (const auto batch = attention.CudnnBatch()) return BatchBackward(attention, *batch, da, a, lse);
  if (attention.TakesFlash()) return FlashBackward(attention, da, a, lse);
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
