// Causal grouped-query attention (docs/model/attention.md#forward). q query heads, kv key and value heads, head_dim d;
// heads are those of this rank.
//
//   causal_attention        qkv [S,B,(q+2kv)d], columns [all q | all k | all v] -> a [S,B,q d], lse [B,q,S]
//   causal_attention_grad   da, qkv, a, lse -> dqkv
//
// With cp, S is this rank's zigzag part of the sequence of T positions, and keys and values are those of all:
//
//   causal_attention        q [S,B,q d], kv [T,B,2 kv d] -> a, lse
//   causal_attention_grad   da, q, kv, a, lse -> dq, dkv [T,B,2 kv d], the term of this rank's queries
//
// With more tp ranks than key heads, a rank has the keys and values of all kv heads, and its queries share one of them:
//
//   causal_attention_all_kv        q [S,B,q d], kv [T,B,2 kv d] -> a, lse
//   causal_attention_all_kv_grad   da, q, kv, a, lse -> dq, dkv [T,B,2 kv d], 0 for the heads of other ranks' queries
//
// With packed documents document_ends is the last input, and a query sees the keys of its own document only.
//
// The plain form computes an exact softmax in fp32 (fp64 for fp64). It works through strips of queries, so that only a
// strip of the score matrix exists at a time. Results have the dtype of q. lse, the log of the sum of exponentials of
// each row of scores, is fp32 (fp64). The backward reads q, k, v, a and lse, and computes the probabilities again:
// exp(score - lse) (docs/model/attention.md#backward).
#include "executor/ops/causal_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kQueriesPerStrip = 256;

// [S,B,kv*group*d] <-> [B,kv,group,S,d]
at::Tensor QueryHeads(const AttentionInputs& in, const at::Tensor& x) {
  return Wide(x)
      .reshape({x.size(0), x.size(1), in.kv_heads, in.group, in.head_dim})
      .permute({1, 2, 3, 0, 4})
      .contiguous();
}
at::Tensor FromQueryHeads(const AttentionInputs& in, const at::Tensor& x) {
  return x.permute({3, 0, 1, 2, 4}).reshape({x.size(3), x.size(0), in.q_heads * in.head_dim});
}

// [T,B,kv*d] <-> [B,kv,T,d]
at::Tensor KeyHeads(const AttentionInputs& in, const at::Tensor& x) {
  return Wide(x).reshape({x.size(0), x.size(1), in.kv_heads, in.head_dim}).permute({1, 2, 0, 3}).contiguous();
}
at::Tensor FromKeyHeads(const at::Tensor& x) {
  return x.permute({2, 0, 1, 3}).reshape({x.size(2), x.size(0), x.size(1) * x.size(3)});
}

// q [B,kv,group,S,d], k and v [B,kv,T,d], all wide.
struct Heads {
  at::Tensor q, k, v;
  explicit Heads(const AttentionInputs& in) : q(QueryHeads(in, in.q)), k(KeyHeads(in, in.k)), v(KeyHeads(in, in.v)) {}
};

// A few queries and the keys that they may see. The heads that share a key are rows of one matrix product, so keys and
// values are never repeated.
struct QueryStrip {
  const AttentionInputs& in;
  QuerySpan span;
  at::Tensor queries(const at::Tensor& x) const {  // [B,kv,group,S,w] -> [B,kv,group*length,w]
    return x.narrow(3, span.first, span.length).reshape({x.size(0), in.kv_heads, in.group * span.length, x.size(4)});
  }
  at::Tensor keys(const at::Tensor& x) const { return x.narrow(2, span.keys_first, span.keys); }
  at::Tensor heads(const at::Tensor& x) const {
    return x.view({x.size(0), in.kv_heads, in.group, span.length, x.size(-1)});
  }
  // Scaled scores [B,kv,group*length,keys]; minus infinity where the key comes after the query.
  at::Tensor scores(const Heads& split) const {
    at::Tensor s = at::matmul(queries(split.q), keys(split.k).transpose(2, 3)).mul_(in.scale);
    const at::Tensor key = at::arange(span.keys, s.options().dtype(at::kLong));
    const at::Tensor own = key.narrow(0, span.keys - span.length, span.length);  // each query's own position
    heads(s).masked_fill_(key > own.unsqueeze(-1), -std::numeric_limits<double>::infinity());
    return s;
  }
};

template <typename Work>
void ForStrips(const AttentionInputs& in, Work work) {
  for (const QueryChunk& chunk : in.chunks) {
    for (const QuerySpan& span : chunk.spans) {
      for (int64_t from = 0; from < span.length; from += kQueriesPerStrip)
        work(QueryStrip{in, PartOf(span, from, std::min(from + kQueriesPerStrip, span.length))});
    }
  }
}

Tensors Attention(const ComputeContext& context, AttendedKeys whose) {
  const AttentionInputs in(context, whose, 0, 0);
  const Heads split(in);
  const at::Tensor a = at::empty_like(split.q);
  const at::Tensor lse = at::empty({in.samples(), in.kv_heads, in.group, in.q.size(0), 1}, split.q.options());
  ForStrips(in, [&](const QueryStrip& strip) {
    at::Tensor scores = strip.scores(split);
    const at::Tensor sum = scores.logsumexp({-1}, true);
    a.narrow(3, strip.span.first, strip.span.length)
        .copy_(strip.heads(at::matmul(scores.sub_(sum).exp_(), strip.keys(split.v))));
    lse.narrow(3, strip.span.first, strip.span.length).copy_(strip.heads(sum));
  });
  return {Narrow(FromQueryHeads(in, a), in.q), lse.view({in.samples(), in.q_heads, in.q.size(0)})};
}

Tensors AttentionGrad(const ComputeContext& context, AttendedKeys whose) {
  const AttentionInputs in(context, whose, 1, 2);
  const size_t index = in.apart ? 3 : 2;
  const at::Tensor &da_whole = context.inputs[0], &a = context.inputs[index], &lse_whole = context.inputs[index + 1];
  const Heads split(in);
  const at::Tensor da = QueryHeads(in, da_whole),
                   lse = lse_whole.view({in.samples(), in.kv_heads, in.group, in.q.size(0), 1});
  // The sum over keys of p dp, which the softmax backward subtracts. It equals da . a, so no strip is needed for it.
  const at::Tensor along = (da * QueryHeads(in, a)).sum({-1}, true);
  const at::Tensor dq = at::empty_like(split.q), dk = at::zeros_like(split.k), dv = at::zeros_like(split.v);
  ForStrips(in, [&](const QueryStrip& strip) {
    const at::Tensor p = strip.scores(split).sub_(strip.queries(lse)).exp_(), da_strip = strip.queries(da);
    strip.keys(dv).add_(at::matmul(p.transpose(2, 3), da_strip));
    at::Tensor ds = at::matmul(da_strip, strip.keys(split.v).transpose(2, 3));
    ds.sub_(strip.queries(along)).mul_(p).mul_(in.scale);
    dq.narrow(3, strip.span.first, strip.span.length).copy_(strip.heads(at::matmul(ds, strip.keys(split.k))));
    strip.keys(dk).add_(at::matmul(ds.transpose(2, 3), strip.queries(split.q)));
  });
  return AttentionGradients(in, Narrow(FromQueryHeads(in, dq), in.q), Narrow(FromKeyHeads(dk), in.q),
                            Narrow(FromKeyHeads(dv), in.q));
}

}  // namespace

AttentionInputs::AttentionInputs(const ComputeContext& context, AttendedKeys whose, size_t index, size_t between)
    : apart(whose == AttendedKeys::kAll || context.instruction.over_cp()),
      q_heads(context.instruction.integer("q_heads")), head_dim(context.instruction.integer("head_dim")),
      all_kv_heads(context.instruction.integer("kv_heads")), kv_heads(all_kv_heads), first_key(0),
      scale(1 / std::sqrt(static_cast<double>(head_dim))) {
  if (whose == AttendedKeys::kAll) {
    const int64_t tp = context.call.tp;
    TORCH_CHECK(all_kv_heads % tp == 0 || tp % all_kv_heads == 0, all_kv_heads, " key heads for ", tp, " ranks");
    kv_heads = std::max<int64_t>(1, all_kv_heads / tp);
    first_key = context.call.tp_rank * all_kv_heads / tp;
  }
  group = q_heads / kv_heads;
  const int64_t queries = q_heads * head_dim, keys = all_kv_heads * head_dim;
  const at::Tensor &first = context.inputs[index], &second = context.inputs[index + (apart ? 1 : 0)];
  const int64_t before = apart ? 0 : queries;  // columns of the second before the keys
  TORCH_CHECK(q_heads % kv_heads == 0 && second.size(2) == before + 2 * keys &&
                  first.size(2) == before + (apart ? queries : 2 * keys),
              "inputs of ", first.sizes(), " and ", second.sizes(), " for ", q_heads, " query and 2 * ", all_kv_heads,
              " key and value heads of ", head_dim);
  q = first.narrow(2, 0, queries);
  k = second.narrow(2, before + first_key * head_dim, kv_heads * head_dim);
  v = second.narrow(2, before + keys + first_key * head_dim, kv_heads * head_dim);
  const size_t ends = index + (apart ? 2 : 1) + between;
  chunks = QueryChunks(context, q.size(0), context.inputs.size() > ends ? &context.inputs[ends] : nullptr);
}

Tensors AttentionGradients(const AttentionInputs& in, const at::Tensor& dq, const at::Tensor& dk,
                           const at::Tensor& dv) {
  if (!in.apart) return {at::cat({dq, dk, dv}, 2)};
  if (in.kv_heads == in.all_kv_heads) return {dq, at::cat({dk, dv}, 2)};
  const int64_t keys = in.all_kv_heads * in.head_dim, first = in.first_key * in.head_dim;
  const at::Tensor dkv = at::zeros({dk.size(0), dk.size(1), 2 * keys}, dk.options());
  dkv.narrow(2, first, dk.size(2)).copy_(dk);
  dkv.narrow(2, keys + first, dv.size(2)).copy_(dv);
  return {dq, dkv};
}

Tensors RunCausalAttention(const ComputeContext& context) { return Attention(context, AttendedKeys::kOwn); }
Tensors RunCausalAttentionAllKv(const ComputeContext& context) { return Attention(context, AttendedKeys::kAll); }
Tensors RunCausalAttentionGrad(const ComputeContext& context) { return AttentionGrad(context, AttendedKeys::kOwn); }
Tensors RunCausalAttentionAllKvGrad(const ComputeContext& context) {
  return AttentionGrad(context, AttendedKeys::kAll);
}

}  // namespace planwright::executor::ops
