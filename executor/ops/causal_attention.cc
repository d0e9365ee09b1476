// Causal grouped-query attention (docs/model/attention.md#forward). q query heads, kv key and value heads, head_dim d;
// heads are those of this rank.
//
//   causal_attention        qkv [S,B,(q+2kv)d], columns [all q | all k | all v] -> a [S,B,q d], lse [B,q,S]
//   causal_attention_grad   da, qkv, a, lse -> dqkv
//
// The plain form computes an exact softmax in fp32 (fp64 for fp64). It works through strips of queries, so that only a
// strip of the score matrix exists at a time. On GPUs bf16 goes through LibTorch's flash kernel instead; a test
// compares it with the plain form. a and dqkv have the dtype of qkv. lse, the log of the sum of exponentials of each
// row of scores, is fp32 (fp64). The backward reads qkv, a and lse, and computes the probabilities again: exp(score -
// lse) (docs/model/attention.md#backward).
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
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kQueriesPerStrip = 256;

struct AttentionSizes {
  int64_t S, B, q, kv, r, d;  // r = q / kv query heads share one key head
  double scale;
  AttentionSizes(const ComputeContext& context, const at::Tensor& qkv)
      : S(qkv.size(0)), B(qkv.size(1)), q(context.instruction.integer("q_heads")),
        kv(context.instruction.integer("kv_heads")), r(q / kv), d(context.instruction.integer("head_dim")),
        scale(1 / std::sqrt(static_cast<double>(d))) {
    TORCH_CHECK(q % kv == 0 && qkv.size(2) == (q + 2 * kv) * d, "qkv has width ", qkv.size(2), ", expected that of ", q,
                " query and 2 * ", kv, " key and value heads of ", d);
  }
};

// [S,B,kv*r*d] <-> [B,kv,r,S,d]
at::Tensor QueryHeads(const AttentionSizes& h, const at::Tensor& x) {
  return Wide(x).reshape({h.S, h.B, h.kv, h.r, h.d}).permute({1, 2, 3, 0, 4}).contiguous();
}
at::Tensor FromQueryHeads(const AttentionSizes& h, const at::Tensor& x) {
  return x.permute({3, 0, 1, 2, 4}).reshape({h.S, h.B, h.q * h.d});
}

// [S,B,kv*d] <-> [B,kv,S,d]
at::Tensor KeyHeads(const AttentionSizes& h, const at::Tensor& x) {
  return Wide(x).reshape({h.S, h.B, h.kv, h.d}).permute({1, 2, 0, 3}).contiguous();
}
at::Tensor FromKeyHeads(const AttentionSizes& h, const at::Tensor& x) {
  return x.permute({2, 0, 1, 3}).reshape({h.S, h.B, h.kv * h.d});
}

// q [B,kv,r,S,d], k and v [B,kv,S,d], all wide.
struct QueryKeyValue {
  at::Tensor q, k, v;
  QueryKeyValue(const AttentionSizes& h, const at::Tensor& qkv)
      : q(QueryHeads(h, qkv.narrow(2, 0, h.q * h.d))), k(KeyHeads(h, qkv.narrow(2, h.q * h.d, h.kv * h.d))),
        v(KeyHeads(h, qkv.narrow(2, (h.q + h.kv) * h.d, h.kv * h.d))) {}
};

// The queries [first, end) and the keys that they may see, [0, end). The r heads that share a key are rows of one
// matrix product, so keys and values are never repeated.
struct QueryStrip {
  const AttentionSizes& h;
  int64_t first, end;
  int64_t length() const { return end - first; }
  at::Tensor queries(const at::Tensor& x) const {  // [B,kv,r,S,w] -> [B,kv,r*length,w]
    return x.narrow(3, first, length()).reshape({h.B, h.kv, h.r * length(), x.size(4)});
  }
  at::Tensor keys(const at::Tensor& x) const { return x.narrow(2, 0, end); }
  at::Tensor heads(const at::Tensor& x) const { return x.view({h.B, h.kv, h.r, length(), x.size(-1)}); }
  // Scaled scores [B,kv,r*length,end]; minus infinity where the key comes after the query.
  at::Tensor scores(const QueryKeyValue& split) const {
    at::Tensor s = at::matmul(queries(split.q), keys(split.k).transpose(2, 3)).mul_(h.scale);
    const at::Tensor key = at::arange(end, s.options().dtype(at::kLong));
    const at::Tensor later = key > key.narrow(0, first, length()).unsqueeze(-1);
    heads(s).masked_fill_(later, -std::numeric_limits<double>::infinity());
    return s;
  }
};

template <typename Work>
void ForStrips(const AttentionSizes& h, Work work) {
  for (int64_t first = 0; first < h.S; first += kQueriesPerStrip)
    work(QueryStrip{h, first, std::min(first + kQueriesPerStrip, h.S)});
}

bool TakesFlash(const at::Tensor& qkv) { return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16; }

// The columns of `heads` heads from head `first`, as the flash kernel wants them: [B,S,heads,d].
at::Tensor FlashHeads(const AttentionSizes& h, const at::Tensor& x, int64_t first, int64_t heads) {
  return x.narrow(2, first * h.d, heads * h.d).reshape({h.S, h.B, heads, h.d}).transpose(0, 1);
}
at::Tensor FromFlashHeads(const at::Tensor& x) {
  const at::Tensor by_position = x.transpose(0, 1);
  return by_position.reshape({by_position.size(0), by_position.size(1), x.size(2) * x.size(3)});
}

Tensors FlashForward(const AttentionSizes& h, const at::Tensor& qkv) {
  const auto result = at::_flash_attention_forward(
      FlashHeads(h, qkv, 0, h.q), FlashHeads(h, qkv, h.q, h.kv), FlashHeads(h, qkv, h.q + h.kv, h.kv), {}, {}, h.S, h.S,
      /*dropout_p=*/0, /*is_causal=*/true, /*return_debug_mask=*/false, h.scale);
  return {FromFlashHeads(std::get<0>(result)), std::get<1>(result)};
}

at::Tensor FlashBackward(const AttentionSizes& h, const at::Tensor& da, const at::Tensor& qkv, const at::Tensor& a,
                         const at::Tensor& lse) {
  // The kernel takes the random state of dropout, but does not read it where there is none.
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
  const AttentionSizes h(context, qkv);
  if (TakesFlash(qkv)) return FlashForward(h, qkv);
  const QueryKeyValue split(h, qkv);
  const at::Tensor a = at::empty_like(split.q);
  const at::Tensor lse = at::empty({h.B, h.kv, h.r, h.S, 1}, split.q.options());
  ForStrips(h, [&](const QueryStrip& strip) {
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
  const AttentionSizes h(context, qkv);
  if (TakesFlash(qkv)) return {FlashBackward(h, context.inputs[0], qkv, context.inputs[2], context.inputs[3])};
  const QueryKeyValue split(h, qkv);
  const at::Tensor da = QueryHeads(h, context.inputs[0]), lse = context.inputs[3].view({h.B, h.kv, h.r, h.S, 1});
  // The sum over keys of p dp, which the softmax backward subtracts. It equals da . a, so no strip is needed for it.
  const at::Tensor along = (da * QueryHeads(h, context.inputs[2])).sum({-1}, true);
  const at::Tensor dq = at::empty_like(split.q), dk = at::zeros_like(split.k), dv = at::zeros_like(split.v);
  ForStrips(h, [&](const QueryStrip& strip) {
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
