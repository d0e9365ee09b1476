// Causal attention by LibTorch's flash kernel: bf16 on GPUs. causal_attention.cc has the plain form, which defines it.
#pragma once

#include <vector>

#include "executor/ops/query_spans.h"

namespace planwright::executor::ops {

// Heads of one call, [batch, positions, heads, head_dim]: q of this rank, k and v of the whole sequence.
struct FlashOperands {
  at::Tensor q, k, v;
  double scale = 1;
};

// a of the shape of q; lse [batch, heads, queries], fp32.
struct FlashResult {
  at::Tensor a, lse;
};
FlashResult FlashForward(const FlashOperands& x, const std::vector<QueryChunk>& chunks);

// dk and dv are of the whole sequence: the terms of this rank's queries.
struct FlashGradients {
  at::Tensor dq, dk, dv;
};
FlashGradients FlashBackward(const FlashOperands& x, const std::vector<QueryChunk>& chunks, const at::Tensor& da,
                             const FlashResult& forward);

}  // namespace planwright::executor::ops
