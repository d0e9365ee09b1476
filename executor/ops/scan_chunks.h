// The Mamba-2 recursion over chunks of positions (facts 3.5): what the scan and its gradient share.
//
// With a_t = dt_t A and u_t = dt_t x_t, the state h_t = exp(a_t) h_{t-1} + u_t B_t^T and y_t = h_t C_t + D x_t. Within
// a chunk all positions see one another through a masked matrix of decays; between chunks only the state passes. Both
// parts are batched matrix products; the only loop is over chunks. Positions that fill the last chunk have dt = 0: they
// neither decay nor add.
//
// Shapes: K chunks of Q positions, B samples, g groups of r heads, head_dim p, state n.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

struct ScanSizes {
  int64_t S, B, g, r, p, n, Q, K, inner;
  ScanSizes(const ComputeContext& context, const at::Tensor& xbc);
};

// [S,B,g*w] <-> [K,B,g,Q,w]; tail positions are zeros.
at::Tensor ToChunks(const ScanSizes& sizes, const at::Tensor& x);
at::Tensor FromChunks(const ScanSizes& sizes, const at::Tensor& x);

struct ScanChunks {
  at::Tensor x;       // [K,B,g,Q,r*p]
  at::Tensor b, c;    // [K,B,g,Q,n]
  at::Tensor raw_dt;  // [S,B,heads] dt before softplus, with its bias
  at::Tensor dt;      // [K,B,g,Q,r]
  at::Tensor a;       // [heads] A, negative
  at::Tensor decay;   // [K,B,g,r,Q] running sum of dt A from the chunk's start, its own position included
  ScanChunks(const ScanSizes& sizes, const at::Tensor& xbc, const at::Tensor& zxbcdt, const Tensors& parameters);
};

// [K,B,g,Q,r*w] -> [K,B,g,r,Q,w] and back.
at::Tensor ByHead(const ScanSizes& sizes, const at::Tensor& x);
at::Tensor ByGroup(const ScanSizes& sizes, const at::Tensor& x);

// x [K,B,g,Q,r*p] times one factor for each head and position, [K,B,g,r,Q].
at::Tensor TimesPerHead(const ScanSizes& sizes, const at::Tensor& x, const at::Tensor& factor);

// exp(decay_i - decay_j) for j <= i, else 0: [K,B,g,r,Q,Q].
at::Tensor DecayMatrix(const at::Tensor& decay);

}  // namespace planwright::executor::ops
