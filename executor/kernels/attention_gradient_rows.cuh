// What the backward of attention does row by row, before and after its products (executor/kernels/attention.h).
#pragma once

#include "executor/kernels/attention_tiles.cuh"

namespace planwright::executor::ops {

// Queries come in blocks of 64. For each, two numbers a query: lse times log2(e), and da . a. Behind the end of a
// sequence they are infinite and 0, so that such a query has no weight.
constexpr int kQueryBlock = 64, kStatistics = 2 * kQueryBlock;
// Sums of dq of a block of queries, in the order in which the threads of a warpgroup have them: four of each thread,
// then the next four.
template <int columns>
inline constexpr int kBlockSums = kQueryBlock* columns;

// Where the number of a query stands among the 64. A thread needs columns 8 i + 2 t and the next, of all i < 8, with t
// the same: those of two i lie together.
__device__ inline int PlaceOf(int query) {
  return query / 16 * 16 + query % 8 / 2 * 4 + query % 16 / 8 * 2 + query % 2;
}

// Of a run. The kernels of this file are launched for each, with pointers to what is its own.
struct GradientShape {
  int length = 0, heads = 0, sequences = 0;
  int query_blocks = 0;         // of a sequence
  int64_t rows = 0;             // of the sequences of all runs
  float scale = 1, scale2 = 1;  // of scores; the same times log2(e)
};

constexpr int kPairsAtOnce = 32, kPairRounds = 4, kPairs = kPairRounds * kPairsAtOnce;  // of a row and a head
template <int columns>
inline constexpr int kPairChunks = columns / 8;
template <int columns>
inline constexpr int kPairThreads = kPairsAtOnce* kPairChunks<columns>;

// Statistics of all queries [sequences, heads, query blocks, 2, 64], and zeros for the sums of dq.
template <int columns>
__global__ void __launch_bounds__(kPairThreads<columns>)
    PrepareGradientKernel(const __nv_bfloat16* a, const __nv_bfloat16* da, const float* lse, float* statistics,
                          float* sums, const __grid_constant__ GradientShape shape) {
  __shared__ float partial[kPairRounds][kPairThreads<columns>];
  const int thread = static_cast<int>(threadIdx.x), sequence = static_cast<int>(blockIdx.y);
  const int pair0 = static_cast<int>(blockIdx.x) * kPairs, all = shape.query_blocks * kQueryBlock * shape.heads;
  const int64_t first = (static_cast<int64_t>(sequence) * shape.length * shape.heads + pair0) * columns;
  const auto* x = reinterpret_cast<const uint4*>(a + first) + thread;
  const auto* y = reinterpret_cast<const uint4*>(da + first) + thread;
  uint4 from[kPairRounds], with[kPairRounds];
#pragma unroll
  for (int i = 0; i < kPairRounds; ++i) {
    from[i] = with[i] = make_uint4(0, 0, 0, 0);
    if (pair0 + i * kPairsAtOnce + thread / kPairChunks<columns> < shape.length * shape.heads)
      from[i] = x[i * kPairThreads<columns>], with[i] = y[i * kPairThreads<columns>];
  }
  auto* zeros = reinterpret_cast<float4*>(sums + (static_cast<int64_t>(sequence) * all + pair0) * columns) + thread;
#pragma unroll
  for (int i = 0; i < 2 * kPairRounds; ++i)
    if (pair0 + i * kPairsAtOnce / 2 + thread / (2 * kPairChunks<columns>) < all)
      zeros[i * kPairThreads<columns>] = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int i = 0; i < kPairRounds; ++i) {
    const auto* p = reinterpret_cast<const __nv_bfloat162*>(&from[i]);
    const auto* q = reinterpret_cast<const __nv_bfloat162*>(&with[i]);
    float sum = 0;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float2 u = __bfloat1622float2(p[e]), v = __bfloat1622float2(q[e]);
      sum = fmaf(u.x, v.x, fmaf(u.y, v.y, sum));
    }
    partial[i][thread] = sum;
  }
  __syncthreads();
  const int pair = pair0 + thread, row = pair / shape.heads, head = pair % shape.heads;
  if (thread >= kPairs || pair >= all) return;
  float exponent = INFINITY, product = 0;
  if (row < shape.length) {
#pragma unroll
    for (int i = 0; i < kPairChunks<columns>; ++i) product += partial[0][thread * kPairChunks<columns> + i];
    exponent =
        lse[head * shape.rows + static_cast<int64_t>(sequence) * shape.length + row] * static_cast<float>(kLog2E);
  }
  const int64_t block = (static_cast<int64_t>(sequence) * shape.heads + head) * shape.query_blocks + row / kQueryBlock;
  float* to = statistics + block * kStatistics + PlaceOf(row % kQueryBlock);
  to[0] = exponent, to[kQueryBlock] = product;
}

// dq = scale times its sums, rounded. A block has 64 queries of a head.
template <int columns>
__global__ void __launch_bounds__(kWarpgroup)
    RoundQueryGradientKernel(const float* sums, __nv_bfloat16* dq, int64_t stride,
                             const __grid_constant__ GradientShape shape) {
  // With the gap behind a row, the 8 rows x 16 bytes that a warp writes at a time meet all banks.
  __shared__ alignas(16) __nv_bfloat16 tile[kQueryBlock][columns + 8];
  const int thread = static_cast<int>(threadIdx.x);
  const int block = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int sequence = static_cast<int>(blockIdx.z);
  const int64_t of = (static_cast<int64_t>(sequence) * shape.heads + head) * shape.query_blocks + block;
  const auto* from = reinterpret_cast<const float4*>(sums + of * kBlockSums<columns>) + thread;
  const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
#pragma unroll
  for (int i = 0; i < columns / 8; ++i) {
    const float4 x = from[i * kWarpgroup];
    *reinterpret_cast<uint32_t*>(&tile[row][8 * i + column]) = Pack(x.x * shape.scale, x.y * shape.scale);
    *reinterpret_cast<uint32_t*>(&tile[row + 8][8 * i + column]) = Pack(x.z * shape.scale, x.w * shape.scale);
  }
  __syncthreads();
  for (int i = thread; i < kQueryBlock * kPairChunks<columns>; i += kWarpgroup) {
    const int at = i / kPairChunks<columns>, to = block * kQueryBlock + at, chunk = i % kPairChunks<columns> * 8;
    if (to >= shape.length) break;
    *reinterpret_cast<uint4*>(dq + (static_cast<int64_t>(sequence) * shape.length + to) * stride + head * columns +
                              chunk) = *reinterpret_cast<const uint4*>(&tile[at][chunk]);
  }
}

}  // namespace planwright::executor::ops
