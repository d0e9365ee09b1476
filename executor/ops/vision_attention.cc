// Attention of the vision encoder, inside each image of a packed batch, not causal, with scale 1/sqrt(d)
// (docs/model/vision_encoder.md#attention). N packed rows, each image's class tokens first; heads are those of this
// rank.
//
//   packed_attention        qkv [N,3 heads d], columns [all q | all k | all v]; image_grid i64 [n,2] host
//                           -> a [N,heads d], lse [heads,N]
//   packed_attention_grad   da, qkv, a, lse, image_grid -> dqkv
//
// The plain form computes whole score matrices, one image at a time, in fp32 (fp64 for fp64). On GPUs bf16 goes through
// LibTorch's flash kernel, all images at once; a test compares it with the plain form. a and dqkv have the dtype of
// qkv, lse is fp32 (fp64). The backward reads qkv, a and lse, and computes the probabilities again as exp(score - lse).
#include <ATen/TensorOperators.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/vision_images.h"
#include "executor/tensors.h"

namespace planwright::executor::ops {
namespace {

struct PackedHeads {
  int64_t heads, head_dim, class_tokens;
  explicit PackedHeads(const Instruction& op)
      : heads(op.integer("heads")), head_dim(op.integer("head_dim")), class_tokens(op.integer("class_tokens")) {}

  int64_t width() const { return heads * head_dim; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(head_dim)); }
  int64_t Length(const ImageSpan& image) const { return image.patches() + class_tokens; }
  at::Tensor Rows(const at::Tensor& x, const ImageSpan& image) const {
    return x.narrow(0, image.first_token, Length(image));
  }

  // Columns `part` of [L, parts * heads * head_dim] as [heads, L, head_dim], wide.
  at::Tensor Split(const at::Tensor& x, int64_t part) const {
    return x.narrow(1, part * width(), width()).reshape({x.size(0), heads, head_dim}).transpose(0, 1).to(WideType(x));
  }
  // [heads, L, head_dim] into columns `part` of `into` [L, parts * heads * head_dim].
  void Join(const at::Tensor& x, int64_t part, const at::Tensor& into) const {
    into.narrow(1, part * width(), width()).copy_(x.transpose(0, 1).reshape({x.size(1), width()}));
  }
};

void CheckRows(const PackedHeads& h, const std::vector<ImageSpan>& images, const at::Tensor& qkv) {
  const int64_t tokens = images.empty() ? 0 : images.back().first_token + h.Length(images.back());
  TORCH_CHECK(qkv.dim() == 2 && qkv.size(0) == tokens && qkv.size(1) == 3 * h.width(), "packed attention over ",
              images.size(), " images needs qkv of [", tokens, ", ", 3 * h.width(), "], not ", qkv.sizes());
}

bool TakesFlash(const at::Tensor& qkv) {
  return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16 && qkv.size(0) > 0;
}

// Where the flash kernel finds the rows of each image.
struct PackedSequences {
  at::Tensor starts;    // i32 [n + 1] on the device: the first row of each image, and behind them N
  int64_t longest = 0;  // rows of the longest image

  PackedSequences(const PackedHeads& h, const std::vector<ImageSpan>& images, at::Device device) {
    std::vector<int32_t> first = {0};
    for (const ImageSpan& image : images) {
      first.push_back(first.back() + static_cast<int32_t>(h.Length(image)));
      longest = std::max(longest, h.Length(image));
    }
    starts = ToDevice(at::tensor(first, at::kInt), device);
  }
};

// [N, heads * head_dim] <-> [N, heads, head_dim]
at::Tensor SplitHeads(const at::Tensor& x, const PackedHeads& h) { return x.reshape({x.size(0), h.heads, h.head_dim}); }
at::Tensor JoinHeads(const at::Tensor& x) { return x.reshape({x.size(0), -1}); }
// q, k or v (part 0, 1, 2) of qkv as [N, heads, head_dim].
at::Tensor PartOfQkv(const at::Tensor& qkv, const PackedHeads& h, int64_t part) {
  return qkv.view({qkv.size(0), 3, h.heads, h.head_dim}).select(1, part);
}

Tensors FlashForward(const PackedHeads& h, const std::vector<ImageSpan>& images, const at::Tensor& qkv) {
  const PackedSequences s(h, images, qkv.device());
  const auto result = at::_flash_attention_forward(
      PartOfQkv(qkv, h, 0), PartOfQkv(qkv, h, 1), PartOfQkv(qkv, h, 2), s.starts, s.starts, s.longest, s.longest,
      /*dropout_p=*/0, /*is_causal=*/false, /*return_debug_mask=*/false, h.scale());
  return {JoinHeads(std::get<0>(result)), std::get<1>(result)};
}

at::Tensor FlashBackward(const PackedHeads& h, const std::vector<ImageSpan>& images, const at::Tensor& da,
                         const at::Tensor& qkv, const at::Tensor& a, const at::Tensor& lse) {
  const PackedSequences s(h, images, qkv.device());
  // The kernel takes the random state of dropout, but does not read it where there is none.
  const at::Tensor no_dropout = at::empty({2}, qkv.options().dtype(at::kUInt64));
  const auto [dq, dk, dv] =
      at::_flash_attention_backward(SplitHeads(da, h), PartOfQkv(qkv, h, 0), PartOfQkv(qkv, h, 1), PartOfQkv(qkv, h, 2),
                                    SplitHeads(a, h), lse, s.starts, s.starts, s.longest, s.longest, /*dropout_p=*/0,
                                    /*is_causal=*/false, no_dropout, no_dropout, h.scale());
  return at::cat({JoinHeads(dq), JoinHeads(dk), JoinHeads(dv)}, 1);
}

}  // namespace

Tensors RunPackedAttention(const ComputeContext& context) {
  const at::Tensor& qkv = context.inputs[0];
  const PackedHeads h(context.instruction);
  const std::vector<ImageSpan> images = ImageSpans(context.inputs[1], h.class_tokens);
  CheckRows(h, images, qkv);
  if (TakesFlash(qkv)) return FlashForward(h, images, qkv);
  const at::Tensor a = at::empty({qkv.size(0), h.width()}, qkv.options());
  // Wide: an lse rounded to bf16 would scale whole rows of the probabilities that the backward computes from it.
  const at::Tensor lse = at::empty({h.heads, qkv.size(0)}, qkv.options().dtype(WideType(qkv)));
  for (const ImageSpan& image : images) {
    const at::Tensor rows = h.Rows(qkv, image);
    const at::Tensor scores = h.Split(rows, 0).matmul(h.Split(rows, 1).transpose(1, 2)) * h.scale();
    const at::Tensor normaliser = scores.logsumexp(at::IntArrayRef{2}, true);
    h.Join((scores - normaliser).exp().matmul(h.Split(rows, 2)), 0, h.Rows(a, image));
    lse.narrow(1, image.first_token, h.Length(image)).copy_(normaliser.squeeze(2));
  }
  return {a, lse};
}

Tensors RunPackedAttentionGrad(const ComputeContext& context) {
  const at::Tensor &da = context.inputs[0], &qkv = context.inputs[1], &a = context.inputs[2], &lse = context.inputs[3];
  const PackedHeads h(context.instruction);
  const std::vector<ImageSpan> images = ImageSpans(context.inputs[4], h.class_tokens);
  CheckRows(h, images, qkv);
  if (TakesFlash(qkv)) return {FlashBackward(h, images, da, qkv, a, lse)};
  const at::Tensor dqkv = at::empty(qkv.sizes(), qkv.options());
  for (const ImageSpan& image : images) {
    const at::Tensor rows = h.Rows(qkv, image), into = h.Rows(dqkv, image);
    const at::Tensor q = h.Split(rows, 0), k = h.Split(rows, 1), v = h.Split(rows, 2);
    const at::Tensor d_out = h.Split(h.Rows(da, image), 0), out = h.Split(h.Rows(a, image), 0);
    const at::Tensor normaliser = lse.narrow(1, image.first_token, h.Length(image)).unsqueeze(2).to(q.scalar_type());
    const at::Tensor p = (q.matmul(k.transpose(1, 2)) * h.scale() - normaliser).exp();
    const at::Tensor ds = p * (d_out.matmul(v.transpose(1, 2)) - (d_out * out).sum(-1, true)) * h.scale();
    h.Join(ds.matmul(k), 0, into);
    h.Join(ds.transpose(1, 2).matmul(q), 1, into);
    h.Join(p.transpose(1, 2).matmul(d_out), 2, into);
  }
  return {dqkv};
}

}  // namespace planwright::executor::ops
