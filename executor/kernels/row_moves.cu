// Rows moved by index (executor/kernels/row_moves.h). Every thread moves 16 bytes at a time, neighbouring threads
// neighbouring ones. What is written or read once only passes by the cache, which then keeps what is used again.
#include "executor/kernels/row_math.cuh"
#include "executor/kernels/row_moves.h"

namespace planwright::executor::ops {
namespace {

constexpr int kMostThreads = 256;
constexpr int kAtOnce = 4;  // loads that a thread has on their way
constexpr int kCopyWarps = 8;

// blockIdx.x: token; blockIdx.y: part of the row.
__global__ void __launch_bounds__(kMostThreads)
    SpreadRowsKernel(const uint4* source, TokenRows shape, int64_t vectors, uint4* rows) {
  const int64_t token = blockIdx.x, vector = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  if (vector >= vectors) return;
  const uint4 value = source[token * vectors + vector];
  const int top_k = static_cast<int>(shape.top_k);
#pragma unroll 4
  for (int j = 0; j < top_k; ++j) __stcs(rows + shape.row_of_slot[token * top_k + j] * vectors + vector, value);
}

// kHere: a slot may have no row (-1), and sums are fp32, two vectors for each of the rows.
template <bool kHere>
__global__ void __launch_bounds__(kMostThreads)
    SumRowsKernel(const uint4* rows, TokenRows shape, int64_t vectors, uint4* sums) {
  const int64_t token = blockIdx.x, vector = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  if (vector >= vectors) return;
  const int top_k = static_cast<int>(shape.top_k);
  float sum[8] = {};
  for (int first = 0; first < top_k; first += kAtOnce) {
    uint4 values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t row = first + i < top_k ? shape.row_of_slot[token * top_k + first + i] : -1;
      values[i] = row < 0 ? uint4{} : __ldcs(rows + row * vectors + vector);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= top_k) break;
      float wide[8];
      Widen(values[i], wide);
#pragma unroll
      for (int n = 0; n < 8; ++n) sum[n] += wide[n];
    }
  }
  uint4* const at = sums + (token * vectors + vector) * (kHere ? 2 : 1);
  if constexpr (kHere) {
    auto* const wide = reinterpret_cast<float4*>(at);
    wide[0] = {sum[0], sum[1], sum[2], sum[3]};
    wide[1] = {sum[4], sum[5], sum[6], sum[7]};
  } else {
    *at = Narrow(sum);
  }
}

// One warp copies one row.
template <bool kScatter>
__global__ void __launch_bounds__(kCopyWarps* kWarp)
    CopyRowsKernel(const uint4* from, const int64_t* index, int64_t rows, int64_t vectors, uint4* to) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kCopyWarps + threadIdx.x / kWarp;
  if (row >= rows) return;
  const int64_t other = index[row];
  from += (kScatter ? row : other) * vectors;
  to += (kScatter ? other : row) * vectors;
  for (int64_t first = threadIdx.x % kWarp; first < vectors; first += kAtOnce * kWarp) {
    uint4 values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * kWarp < vectors) values[i] = __ldcs(from + first + i * kWarp);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * kWarp < vectors) __stcs(to + first + i * kWarp, values[i]);
    }
  }
}

struct TokenGrid {
  dim3 blocks;
  unsigned threads;
};

// A row in equal parts of at most kMostThreads vectors, so that few threads of a block have nothing to do.
TokenGrid GridOf(int64_t tokens, int64_t vectors) {
  const int64_t parts = (vectors + kMostThreads - 1) / kMostThreads, each = (vectors + parts - 1) / parts;
  return {dim3(static_cast<unsigned>(tokens), static_cast<unsigned>(parts)),
          static_cast<unsigned>((each + kWarp - 1) / kWarp * kWarp)};
}

template <bool kHere>
void SumRows(const __nv_bfloat16* rows, TokenRows shape, void* sums, cudaStream_t stream) {
  const int64_t vectors = shape.width / 8;
  if (shape.tokens == 0 || vectors == 0) return;
  const TokenGrid grid = GridOf(shape.tokens, vectors);
  SumRowsKernel<kHere><<<grid.blocks, grid.threads, 0, stream>>>(reinterpret_cast<const uint4*>(rows), shape, vectors,
                                                                 static_cast<uint4*>(sums));
}

template <bool kScatter>
void CopyRows(const void* from, const int64_t* index, int64_t rows, int64_t row_bytes, void* to, cudaStream_t stream) {
  if (rows == 0 || row_bytes == 0) return;
  const auto blocks = static_cast<unsigned>((rows + kCopyWarps - 1) / kCopyWarps);
  CopyRowsKernel<kScatter><<<blocks, kCopyWarps * kWarp, 0, stream>>>(static_cast<const uint4*>(from), index, rows,
                                                                      row_bytes / 16, static_cast<uint4*>(to));
}

}  // namespace

void LaunchSpreadRows(const __nv_bfloat16* source, TokenRows shape, __nv_bfloat16* rows, cudaStream_t stream) {
  const int64_t vectors = shape.width / 8;
  if (shape.tokens == 0 || vectors == 0) return;
  const TokenGrid grid = GridOf(shape.tokens, vectors);
  SpreadRowsKernel<<<grid.blocks, grid.threads, 0, stream>>>(reinterpret_cast<const uint4*>(source), shape, vectors,
                                                             reinterpret_cast<uint4*>(rows));
}

void LaunchSumRows(const __nv_bfloat16* rows, TokenRows shape, __nv_bfloat16* sums, cudaStream_t stream) {
  SumRows<false>(rows, shape, sums, stream);
}

void LaunchSumRowsHere(const __nv_bfloat16* rows, TokenRows shape, float* sums, cudaStream_t stream) {
  SumRows<true>(rows, shape, sums, stream);
}

void LaunchGatherRows(const void* from, const int64_t* index, int64_t rows, int64_t row_bytes, void* to,
                      cudaStream_t stream) {
  CopyRows<false>(from, index, rows, row_bytes, to, stream);
}

void LaunchScatterRows(const void* from, const int64_t* index, int64_t rows, int64_t row_bytes, void* to,
                       cudaStream_t stream) {
  CopyRows<true>(from, index, rows, row_bytes, to, stream);
}

}  // namespace planwright::executor::ops
