// What the Mamba-2 scan and its gradient share: the recursion over chunks of positions (docs/model/mamba.md#scan).
//
// For each head, with a_t = dt_t A and u_t = dt_t x_t:
//   state  h_t = exp(a_t) h_{t-1} + u_t B_t^T        [p,n]
//   output y_t = h_t C_t + D x_t                     [p]
// Inside a chunk every position sees the earlier ones through a masked matrix of decays; between chunks only the state
// passes. Both parts are batched matrix products, and the only loop is over chunks. The last chunk is filled up with
// positions whose dt is 0: they neither decay the state nor add to it.
//
// With packed documents the state is zero at the start of each document. A chunk may contain several documents: a
// position sees the earlier ones of its own document, and the chunk's start state if its document began before the
// chunk; to the state at the chunk's end add only the positions of the chunk's last document.
//
// Letters of shapes: K chunks of Q positions, S positions, B samples, g groups of r heads, head_dim p, state n.
// All tensors are fp32, or fp64 for fp64 inputs.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// The sizes of one call. c10::Error if xbc has another width than the attributes say.
struct ScanSizes {
  int64_t S, B, g, r, p, n, Q, K, inner;  // inner = g r p
  ScanSizes(const ComputeContext& context, const at::Tensor& xbc);
};

// [S,B,g*w] <-> [K,B,g,Q,w]. The positions that fill the last chunk are zeros.
at::Tensor ToChunks(const ScanSizes& sizes, const at::Tensor& x);
at::Tensor FromChunks(const ScanSizes& sizes, const at::Tensor& x);

// The inputs of the scan in chunks, and the decays.
struct ScanChunks {
  at::Tensor x;       // [K,B,g,Q,r*p]
  at::Tensor b, c;    // [K,B,g,Q,n]
  at::Tensor raw_dt;  // [S,B,heads] dt with its bias, before softplus
  at::Tensor dt;      // [K,B,g,Q,r] after softplus
  at::Tensor a;       // [heads] A = -exp(A_log), negative
  at::Tensor decay;   // [K,B,g,r,Q] running sum of dt A from the chunk's start, its own position included
  // `parameters`: A_log, D, dt_bias of these heads. `document_ends`: null where the sequence is one document.
  ScanChunks(const ScanSizes& sizes, const at::Tensor& xbc, const at::Tensor& zxbcdt, const Tensors& parameters,
             const at::Tensor* document_ends);

  // Factors between 0 and 1, exactly 0 across the end of a document.
  at::Tensor Within() const;     // [K,B,g,r,Q,Q] exp(decay_i - decay_j) for j <= i: what i sees of j
  at::Tensor FromStart() const;  // [K,B,g,r,Q] exp(decay_i): what i sees of the chunk's start state
  at::Tensor ToEnd() const;      // [K,B,g,r,Q] exp(total - decay_j): what is left of j at the chunk's end
  at::Tensor Through() const;    // [K,B,g,r,1] exp(total): what is left of the start state at the chunk's end

 private:
  at::Tensor document_;  // i64 [K,Q], the number of each position's document; undefined where there is one
};

// [K,B,g,Q,r*w] -> [K,B,g,r,Q,w] and back.
at::Tensor ByHead(const ScanSizes& sizes, const at::Tensor& x);
at::Tensor ByGroup(const ScanSizes& sizes, const at::Tensor& x);

// x [K,B,g,Q,r*p] times one factor for each head and position, [K,B,g,r,Q].
at::Tensor TimesPerHead(const ScanSizes& sizes, const at::Tensor& x, const at::Tensor& factor);

}  // namespace planwright::executor::ops
