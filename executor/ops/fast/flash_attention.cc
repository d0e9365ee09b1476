// cuDNN's kernel (cudnn_attention.h) where it can: one document, without cp. All else goes through LibTorch's flash
// kernel.
//
// One call of the flash kernel for each chunk of queries. Where keys reach further back than the queries, the kernel's
// causal mask is aligned at the end: the last query sees all keys, as in a QuerySpan. With packed documents the
// documents of a chunk are sequences of their own in one call (the kernel's form for sequences of different lengths).
#include "executor/ops/fast/flash_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <optional>

#include "executor/base/tensors.h"
#include "executor/ops/fast/cudnn_attention.h"

namespace planwright::executor::ops {
namespace {

at::Tensor Queries(const at::Tensor& x, const QueryChunk& chunk) { return x.narrow(1, chunk.first, chunk.length); }
at::Tensor Keys(const at::Tensor& x, const QueryChunk& chunk) { return x.narrow(1, chunk.keys_first, chunk.keys); }

// Where the kernel finds the documents of a chunk: i32 [documents + 1] on the device, the first row of each, and behind
// them the number of rows. Undefined for one document: then the batch stays a dim of its own.
struct Lengths {
  at::Tensor queries, keys;
  int64_t most_queries = 0, most_keys = 0;

  Lengths(const QueryChunk& chunk, at::Device device) {
    std::vector<int32_t> query = {0}, key = {0};
    for (const QuerySpan& span : chunk.spans) {
      query.push_back(query.back() + static_cast<int32_t>(span.length));
      key.push_back(key.back() + static_cast<int32_t>(span.keys));
      most_queries = std::max(most_queries, span.length), most_keys = std::max(most_keys, span.keys);
    }
    if (chunk.spans.size() == 1) return;
    queries = ToDevice(at::tensor(query, at::kInt), device);
    keys = ToDevice(at::tensor(key, at::kInt), device);
  }

  // The kernel takes sequences of different lengths without a batch dim; a packed sample is the only one of its lane.
  at::Tensor In(const at::Tensor& x) const { return queries.defined() ? x.squeeze(0) : x; }
  at::Tensor Out(const at::Tensor& x) const { return queries.defined() ? x.unsqueeze(0) : x; }
};

std::optional<at::Tensor> IfDefined(const at::Tensor& x) {
  return x.defined() ? std::optional<at::Tensor>(x) : std::nullopt;
}

// Whole sequences of one document: what cuDNN's causal mask is made for.
bool OneCausalDocument(const FlashOperands& x, const std::vector<QueryChunk>& chunks) {
  return chunks.size() == 1 && chunks[0].spans.size() == 1 && x.q.size(1) == x.k.size(1);
}

}  // namespace

FlashResult FlashForward(const FlashOperands& x, const std::vector<QueryChunk>& chunks) {
  if (OneCausalDocument(x, chunks) && TakesCudnn(x)) return CudnnForward(x, /*causal=*/true);
  std::vector<at::Tensor> a, lse;
  for (const QueryChunk& chunk : chunks) {
    const Lengths s(chunk, x.q.device());
    const auto result =
        at::_flash_attention_forward(s.In(Queries(x.q, chunk)), s.In(Keys(x.k, chunk)), s.In(Keys(x.v, chunk)),
                                     IfDefined(s.queries), IfDefined(s.keys), s.most_queries, s.most_keys,
                                     /*dropout_p=*/0, /*is_causal=*/true, /*return_debug_mask=*/false, x.scale);
    a.push_back(s.Out(std::get<0>(result)));
    lse.push_back(s.Out(std::get<1>(result)));
  }
  if (chunks.size() == 1) return {a[0], lse[0]};
  return {at::cat(a, 1), at::cat(lse, 2)};
}

FlashGradients FlashBackward(const FlashOperands& x, const std::vector<QueryChunk>& chunks, const at::Tensor& da,
                             const FlashResult& forward) {
  if (OneCausalDocument(x, chunks) && TakesCudnn(x)) return CudnnBackward(x, /*causal=*/true, da, forward);
  // The kernel takes the random state of dropout, but does not read it where there is none.
  const at::Tensor no_dropout = at::empty({2}, x.q.options().dtype(at::kUInt64));
  std::vector<at::Tensor> dq;
  at::Tensor dk, dv;
  for (const QueryChunk& chunk : chunks) {
    const Lengths s(chunk, x.q.device());
    const at::Tensor lse = s.In(forward.lse.narrow(2, chunk.first, chunk.length)).contiguous();
    const auto [dq_chunk, dk_chunk, dv_chunk] = at::_flash_attention_backward(
        s.In(Queries(da, chunk)), s.In(Queries(x.q, chunk)), s.In(Keys(x.k, chunk)), s.In(Keys(x.v, chunk)),
        s.In(Queries(forward.a, chunk)), lse, s.queries, s.keys, s.most_queries, s.most_keys, /*dropout_p=*/0,
        /*is_causal=*/true, no_dropout, no_dropout, x.scale);
    dq.push_back(s.Out(dq_chunk));
    if (chunks.size() == 1) {  // these are all keys
      dk = s.Out(dk_chunk), dv = s.Out(dv_chunk);
      continue;
    }
    if (!dk.defined()) dk = at::zeros_like(x.k), dv = at::zeros_like(x.v);
    Keys(dk, chunk).add_(s.Out(dk_chunk));
    Keys(dv, chunk).add_(s.Out(dv_chunk));
  }
  return {dq.size() == 1 ? dq[0] : at::cat(dq, 1), dk, dv};
}

}  // namespace planwright::executor::ops
