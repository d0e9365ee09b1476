// Causal grouped-query attention (facts 3.4): qkv [S,B,(q+2kv)d] with columns [all q | all k | all v]. Exact softmax in
// fp32 at least, over blocks of queries so that only a strip of the score matrix exists at a time; the backward makes
// the strip again from the saved log-sum-exp. On GPUs bf16 takes LibTorch's flash kernel instead, which that form
// judges.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "executor/ops/handler.h"
#include "executor/ops/numerics.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kQueries = 256;  // of one strip

struct Heads {
  int64_t S, B, q, kv, r, d;  // r query heads share a key
  double scale;
  Heads(const ComputeContext& context, const at::Tensor& qkv)
      : S(qkv.size(0)), B(qkv.size(1)), q(context.instruction.integer("q_heads")),
        kv(context.instruction.integer("kv_heads")), r(q / kv), d(context.instruction.integer("head_dim")),
        scale(1 / std::sqrt(static_cast<double>(d))) {
    TORCH_CHECK(q % kv == 0 && qkv.size(2) == (q + 2 * kv) * d, "qkv of width ", qkv.size(2), " for ", q, " and ", kv,
                " heads of ", d);
  }
};

// [S,B,kv*r*d] <-> [B,kv,r,S,d]
at::Tensor QueryHeads(const Heads& h, const at::Tensor& x) {
  return Wide(x).reshape({h.S, h.B, h.kv, h.r, h.d}).permute({1, 2, 3, 0, 4}).contiguous();
}
at::Tensor FromQueryHeads(const Heads& h, const at::Tensor& x) {
  return x.permute({3, 0, 1, 2, 4}).reshape({h.S, h.B, h.q * h.d});
}

// [S,B,kv*d] <-> [B,kv,S,d]
at::Tensor KeyHeads(const Heads& h, const at::Tensor& x) {
  return Wide(x).reshape({h.S, h.B, h.kv, h.d}).permute({1, 2, 0, 3}).contiguous();
}
at::Tensor FromKeyHeads(const Heads& h, const at::Tensor& x) {
  return x.permute({2, 0, 1, 3}).reshape({h.S, h.B, h.kv * h.d});
}

struct Split {
  at::Tensor q, k, v;
  Split(const Heads& h, const at::Tensor& qkv)
      : q(QueryHeads(h, qkv.narrow(2, 0, h.q * h.d))), k(KeyHeads(h, qkv.narrow(2, h.q * h.d, h.kv * h.d))),
        v(KeyHeads(h, qkv.narrow(2, (h.q + h.kv) * h.d, h.kv * h.d))) {}
};

// The queries [first, end) and the keys they may see, [0, end). Heads that share a key are rows of one product.
struct Strip {
  const Heads& h;
  int64_t first, end;
  int64_t length() const { return end - first; }
  at::Tensor queries(const at::Tensor& x) const {  // [B,kv,r,S,w] -> [B,kv,r*length,w]
    return x.narrow(3, first, length()).reshape({h.B, h.kv, h.r * length(), x.size(4)});
  }
  at::Tensor keys(const at::Tensor& x) const { return x.narrow(2, 0, end); }
  at::Tensor heads(const at::Tensor& x) const { return x.view({h.B, h.kv, h.r, length(), x.size(-1)}); }
  // Scaled scores [B,kv,r*length,end], minus infinity where the key comes later.
  at::Tensor scores(const Split& split) const {
    at::Tensor s = at::matmul(queries(split.q), keys(split.k).transpose(2, 3)).mul_(h.scale);
    const at::Tensor key = at::arange(end, s.options().dtype(at::kLong));
    const at::Tensor later = key > key.narrow(0, first, length()).unsqueeze(-1);
    heads(s).masked_fill_(later, -std::numeric_limits<double>::infinity());
    return s;
  }
};

template <typename Work>
void ForStrips(const Heads& h, Work work) {
  for (int64_t first = 0; first < h.S; first += kQueries) work(Strip{h, first, std::min(first + kQueries, h.S)});
}

bool TakesFlash(const at::Tensor& qkv) { return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16; }

// Columns of `heads` heads from head `first`, as the kernel wants them: [B,S,heads,d].
at::Tensor FlashHeads(const Heads& h, const at::Tensor& x, int64_t first, int64_t heads) {
  return x.narrow(2, first * h.d, heads * h.d).reshape({h.S, h.B, heads, h.d}).transpose(0, 1);
}
at::Tensor FromFlashHeads(const at::Tensor& x) {
  const at::Tensor by_position = x.transpose(0, 1);
  return by_position.reshape({by_position.size(0), by_position.size(1), x.size(2) * x.size(3)});
}

Tensors FlashForward(const Heads& h, const at::Tensor& qkv) {
  const auto result = at::_flash_attention_forward(
      FlashHeads(h, qkv, 0, h.q), FlashHeads(h, qkv, h.q, h.kv), FlashHeads(h, qkv, h.q + h.kv, h.kv), {}, {}, h.S, h.S,
      /*dropout_p=*/0, /*is_causal=*/true, /*return_debug_mask=*/false, h.scale);
  return {FromFlashHeads(std::get<0>(result)), std::get<1>(result)};
}

at::Tensor FlashBackward(const Heads& h, const at::Tensor& da, const at::Tensor& qkv, const at::Tensor& a,
                         const at::Tensor& lse) {
  // its random state, which is not read
  const at::Tensor no_dropout = at::empty({2}, qkv.options().dtype(at::kUInt64));
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      FlashHeads(h, da, 0, h.q), FlashHeads(h, qkv, 0, h.q), FlashHeads(h, qkv, h.q, h.kv),
      FlashHeads(h, qkv, h.q + h.kv, h.kv), FlashHeads(h, a, 0, h.q), lse, {}, {}, h.S, h.S, /*dropout_p=*/0,
      /*is_causal=*/true, no_dropout, no_dropout, h.scale);
  return at::cat({FromFlashHeads(dq), FromFlashHeads(dk), FromFlashHeads(dv)}, 2);
}

}  // namespace

Tensors RunCausalAttention(const ComputeContext& context) {
  const at::Tensor& qkv = context.inputs[0];
  const Heads h(context, qkv);
  if (TakesFlash(qkv)) return FlashForward(h, qkv);
  const Split split(h, qkv);
  const at::Tensor a = at::empty_like(split.q);
  const at::Tensor lse = at::empty({h.B, h.kv, h.r, h.S, 1}, split.q.options());
  ForStrips(h, [&](const Strip& strip) {
    at::Tensor scores = strip.scores(split);
    const at::Tensor sum = scores.logsumexp({-1}, true);
    a.narrow(3, strip.first, strip.length())
        .copy_(strip.heads(at::matmul(scores.sub_(sum).exp_(), strip.keys(split.v))));
    lse.narrow(3, strip.first, strip.length()).copy_(strip.heads(sum));
  });
  return {Narrow(FromQueryHeads(h, a), qkv), lse.view({h.B, h.q, h.S})};
}

Tensors RunCausalAttentionGrad(const ComputeContext& context) {
  const at::Tensor& qkv = context.inputs[1];
  const Heads h(context, qkv);
  if (TakesFlash(qkv)) return {FlashBackward(h, context.inputs[0], qkv, context.inputs[2], context.inputs[3])};
  const Split split(h, qkv);
  const at::Tensor da = QueryHeads(h, context.inputs[0]), lse = context.inputs[3].view({h.B, h.kv, h.r, h.S, 1});
  const at::Tensor along = (da * QueryHeads(h, context.inputs[2])).sum({-1}, true);  // sum over keys of p dp
  const at::Tensor dq = at::empty_like(split.q), dk = at::zeros_like(split.k), dv = at::zeros_like(split.v);
  ForStrips(h, [&](const Strip& strip) {
    const at::Tensor p = strip.scores(split).sub_(strip.queries(lse)).exp_(), da_strip = strip.queries(da);
    strip.keys(dv).add_(at::matmul(p.transpose(2, 3), da_strip));
    at::Tensor ds = at::matmul(da_strip, strip.keys(split.v).transpose(2, 3));
    ds.sub_(strip.queries(along)).mul_(p).mul_(h.scale);
    dq.narrow(3, strip.first, strip.length()).copy_(strip.heads(at::matmul(ds, strip.keys(split.k))));
    strip.keys(dk).add_(at::matmul(ds.transpose(2, 3), strip.queries(split.q)));
  });
  return {Narrow(at::cat({FromQueryHeads(h, dq), FromKeyHeads(h, dk), FromKeyHeads(h, dv)}, 2), qkv)};
}

}  // namespace planwright::executor::ops
