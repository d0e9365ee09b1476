// Attention inside each image of a packed batch, not causal, scale 1/sqrt(d) (facts 3.9). Scores and softmax in fp64
// for fp64 values, else in fp32. On GPUs bf16 takes LibTorch's flash kernel over all images at once; everything else
// whole score matrices of one image at a time: the plain form that judges the other.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "executor/ops/handler.h"
#include "executor/ops/vision_images.h"
#include "executor/to_device.h"

namespace planwright::executor::ops {
namespace {

at::ScalarType MathType(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

struct Heads {
  int64_t heads, head_dim, class_tokens;
  explicit Heads(const Instruction& op)
      : heads(op.integer("heads")), head_dim(op.integer("head_dim")), class_tokens(op.integer("class_tokens")) {}

  int64_t width() const { return heads * head_dim; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(head_dim)); }
  int64_t Length(const ImageSpan& image) const { return image.patches() + class_tokens; }
  at::Tensor Rows(const at::Tensor& x, const ImageSpan& image) const {
    return x.narrow(0, image.first_token, Length(image));
  }

  // Columns `part` of [L, parts * heads * head_dim] as [heads, L, head_dim] in the type of the mathematics.
  at::Tensor Split(const at::Tensor& x, int64_t part) const {
    return x.narrow(1, part * width(), width()).reshape({x.size(0), heads, head_dim}).transpose(0, 1).to(MathType(x));
  }
  // [heads, L, head_dim] into columns `part` of `into` [L, parts * heads * head_dim].
  void Join(const at::Tensor& x, int64_t part, const at::Tensor& into) const {
    into.narrow(1, part * width(), width()).copy_(x.transpose(0, 1).reshape({x.size(1), width()}));
  }
};

void CheckRows(const Heads& h, const std::vector<ImageSpan>& images, const at::Tensor& qkv) {
  const int64_t tokens = images.empty() ? 0 : images.back().first_token + h.Length(images.back());
  TORCH_CHECK(qkv.dim() == 2 && qkv.size(0) == tokens && qkv.size(1) == 3 * h.width(), "packed attention over ",
              images.size(), " images needs qkv of [", tokens, ", ", 3 * h.width(), "], got ", qkv.sizes());
}

bool TakesFlash(const at::Tensor& qkv) {
  return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16 && qkv.size(0) > 0;
}

// Where the flash kernel finds each image's rows: int32 starts and the end, on the device, and the longest image.
struct Sequences {
  at::Tensor starts;
  int64_t longest = 0;

  Sequences(const Heads& h, const std::vector<ImageSpan>& images, at::Device device) {
    std::vector<int32_t> first = {0};
    for (const ImageSpan& image : images) {
      first.push_back(first.back() + static_cast<int32_t>(h.Length(image)));
      longest = std::max(longest, h.Length(image));
    }
    starts = ToDevice(at::tensor(first, at::kInt), device);
  }
};

at::Tensor AsHeads(const at::Tensor& x, const Heads& h) { return x.reshape({x.size(0), h.heads, h.head_dim}); }
at::Tensor AsRows(const at::Tensor& x) { return x.reshape({x.size(0), -1}); }
at::Tensor Third(const at::Tensor& qkv, const Heads& h, int64_t part) {
  return qkv.view({qkv.size(0), 3, h.heads, h.head_dim}).select(1, part);
}

Tensors FlashForward(const Heads& h, const std::vector<ImageSpan>& images, const at::Tensor& qkv) {
  const Sequences s(h, images, qkv.device());
  const auto result = at::_flash_attention_forward(
      Third(qkv, h, 0), Third(qkv, h, 1), Third(qkv, h, 2), s.starts, s.starts, s.longest, s.longest,
      /*dropout_p=*/0, /*is_causal=*/false, /*return_debug_mask=*/false, h.scale());
  return {AsRows(std::get<0>(result)), std::get<1>(result)};
}

at::Tensor FlashBackward(const Heads& h, const std::vector<ImageSpan>& images, const at::Tensor& da,
                         const at::Tensor& qkv, const at::Tensor& a, const at::Tensor& lse) {
  const Sequences s(h, images, qkv.device());
  // its random state, which is not read
  const at::Tensor no_dropout = at::empty({2}, qkv.options().dtype(at::kUInt64));
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      AsHeads(da, h), Third(qkv, h, 0), Third(qkv, h, 1), Third(qkv, h, 2), AsHeads(a, h), lse, s.starts, s.starts,
      s.longest, s.longest, /*dropout_p=*/0, /*is_causal=*/false, no_dropout, no_dropout, h.scale());
  return at::cat({AsRows(dq), AsRows(dk), AsRows(dv)}, 1);
}

}  // namespace

Tensors RunPackedAttention(const ComputeContext& context) {
  const at::Tensor& qkv = context.inputs[0];
  const Heads h(context.instruction);
  const std::vector<ImageSpan> images = ImageSpans(context.inputs[1], h.class_tokens);
  CheckRows(h, images, qkv);
  if (TakesFlash(qkv)) return FlashForward(h, images, qkv);
  const at::Tensor a = at::empty({qkv.size(0), h.width()}, qkv.options());
  // In the type of the mathematics: rounded to bf16 it would scale whole rows of the backward's probabilities.
  const at::Tensor lse = at::empty({h.heads, qkv.size(0)}, qkv.options().dtype(MathType(qkv)));
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
  const Heads h(context.instruction);
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
