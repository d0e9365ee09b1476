// Kernels on the heads of queries, keys and values: their norm (docs/model/decoder.md#norms-of-heads) and the rotary
// embedding (docs/model/decoder.md#rotary-embedding), in bf16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

constexpr int64_t kWidestHead = 256;

// Matrices are [rows, heads * head_dim], contiguous and aligned to 16 bytes. First stand the heads of queries, then
// those of keys, then those of values, which pass.
struct HeadShape {
  int64_t rows = 0, q_heads = 0, k_heads = 0, v_heads = 0;
  int64_t head_dim = 0;  // a multiple of 8, at most kWidestHead

  __host__ __device__ int64_t turning() const { return q_heads + k_heads; }
  __host__ __device__ int64_t heads() const { return turning() + v_heads; }
  bool empty() const { return rows == 0 || heads() == 0 || head_dim == 0; }
};

// Weights [head_dim] of the heads of queries and of keys, contiguous, at any address. Null where there are no such
// heads.
struct HeadWeights {
  const __nv_bfloat16 *q = nullptr, *k = nullptr;
};

// Also writes scale [rows, turning] fp32: 1/rms of each head. Statistics are fp32.
void LaunchHeadNorm(const __nv_bfloat16* x, HeadWeights weights, float eps, __nv_bfloat16* y, float* scale,
                    const HeadShape& shape, cudaStream_t stream);

// The number of rows of partial sums that LaunchHeadNormGradient writes.
int64_t HeadNormPartials(const HeadShape& shape);

// dx from the gradient of y. `partials` [HeadNormPartials, head_dim for each weight] fp32 gets terms of the gradients
// of the weights, that of queries first: their sums over rows are these gradients. Null: they are not wanted.
void LaunchHeadNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* scale, HeadWeights weights,
                            __nv_bfloat16* dx, float* partials, const HeadShape& shape, cudaStream_t stream);

struct RopeTurns {
  int64_t rotary = 0;                           // features of a head that turn: a multiple of 16, at most head_dim
  float amplitude = 1;                          // of what turns
  double of_plane[kWidestHead / 2] = {};        // whole turns for each position; less than 0: back
  uint8_t axis_of_plane[kWidestHead / 2] = {};  // which positions a plane turns by
};

// y: x turned by positions [axes, rows]; it may be x. Angles are reduced in fp64, cosines and sines are fp32.
void LaunchRope(const __nv_bfloat16* x, const int64_t* positions, const RopeTurns& turns, __nv_bfloat16* y,
                const HeadShape& shape, cudaStream_t stream);

// LaunchHeadNorm, then LaunchRope of its result, in one pass: the result of the norm is neither written nor rounded.
void LaunchHeadNormRope(const __nv_bfloat16* x, HeadWeights weights, float eps, const int64_t* positions,
                        const RopeTurns& turns, __nv_bfloat16* y, float* scale, const HeadShape& shape,
                        cudaStream_t stream);

// The number of rows of partial sums that LaunchRopeHeadNormGradient writes.
int64_t RopeHeadNormPartials(const HeadShape& shape);

// LaunchRope of dy by `turns_back`, then LaunchHeadNormGradient of what comes out, in one pass. dx may be dy.
void LaunchRopeHeadNormGradient(const __nv_bfloat16* dy, const int64_t* positions, const RopeTurns& turns_back,
                                const __nv_bfloat16* x, const float* scale, HeadWeights weights, __nv_bfloat16* dx,
                                float* partials, const HeadShape& shape, cudaStream_t stream);

}  // namespace planwright::executor::ops
