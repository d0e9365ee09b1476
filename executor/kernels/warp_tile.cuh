// Products of tiles in shared memory, by the tensor cores: bf16 factors, fp32 sums. A warp computes 16 rows of a
// product, in steps of 16 columns and 16 of the summed index.
//
// Where an element lies: a sum of 16 x 16 is two MultiplyAdd sums side by side. Of each, lane l has columns 2 (l % 4)
// and the next, of rows l / 4 (elements 0 and 1) and l / 4 + 8 (elements 2 and 3).
#pragma once

#include "executor/kernels/tensor_core.cuh"

namespace planwright::executor::ops {

// Rows of bf16 in shared memory. 16 bytes between rows make eight consecutive ones fall on different banks.
template <int kColumns>
struct Tile {
  static constexpr int kStride = kColumns + 8;
  __host__ __device__ static constexpr int Elements(int rows) { return rows * kStride; }

  __nv_bfloat16* data;
  __device__ __nv_bfloat16* At(int row, int column) const { return data + row * kStride + column; }
  // Two neighbours; `column` is even.
  __device__ float2 Pair(int row, int column) const {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(At(row, column)));
  }
};

__device__ inline int LaneIndex() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int WarpIndex() { return static_cast<int>(threadIdx.x) / 32; }

// A left factor of 16 x 16: rows `row`... and columns `column`... of the tile.
template <int kColumns>
__device__ void LoadLeft(uint32_t (&fragment)[4], const Tile<kColumns>& tile, int row, int column) {
  const int lane = LaneIndex();
  LoadMatrices(fragment, tile.At(row + lane % 16, column + lane / 16 * 8));
}

// A left factor of 16 x 16, which is the transpose of that part of the tile.
template <int kColumns>
__device__ void LoadLeftTransposed(uint32_t (&fragment)[4], const Tile<kColumns>& tile, int row, int column) {
  const int lane = LaneIndex();
  LoadMatricesTransposed(fragment, tile.At(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8));
}

// A right factor of 16 x 16: registers 0 and 1 are its left half, 2 and 3 its right half.
template <int kColumns>
__device__ void LoadRight(uint32_t (&fragment)[4], const Tile<kColumns>& tile, int row, int column) {
  const int lane = LaneIndex();
  LoadMatricesTransposed(fragment, tile.At(row + lane % 16, column + lane / 16 * 8));
}

// A right factor of 16 x 16, which is the transpose of that part of the tile.
template <int kColumns>
__device__ void LoadRightTransposed(uint32_t (&fragment)[4], const Tile<kColumns>& tile, int row, int column) {
  const int lane = LaneIndex();
  LoadMatrices(fragment, tile.At(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8));
}

// left += a b for a right factor of 16 x 16, and its half of the sum in right.
__device__ inline void MultiplyAdd(float (&left)[4], float (&right)[4], const uint32_t (&a)[4],
                                   const uint32_t (&b)[4]) {
  MultiplyAdd(left, a, b[0], b[1]);
  MultiplyAdd(right, a, b[2], b[3]);
}

__device__ inline uint32_t Packed(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ inline uint32_t Scaled(uint32_t pair, float low, float high) {
  const float2 wide = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
  return Packed(wide.x * low, wide.y * high);
}

// Scales the rows of a left factor: this lane's are l / 4 and l / 4 + 8.
__device__ inline void ScaleRows(uint32_t (&fragment)[4], float upper, float lower) {
  fragment[0] = Scaled(fragment[0], upper, upper);
  fragment[1] = Scaled(fragment[1], lower, lower);
  fragment[2] = Scaled(fragment[2], upper, upper);
  fragment[3] = Scaled(fragment[3], lower, lower);
}

// Scales the columns of a left factor by `factors` of its 16 columns, in shared memory.
__device__ inline void ScaleColumns(uint32_t (&fragment)[4], const float* factors) {
  const int column = LaneIndex() % 4 * 2;
  const float2 first = *reinterpret_cast<const float2*>(factors + column),
               second = *reinterpret_cast<const float2*>(factors + column + 8);
  fragment[0] = Scaled(fragment[0], first.x, first.y);
  fragment[1] = Scaled(fragment[1], first.x, first.y);
  fragment[2] = Scaled(fragment[2], second.x, second.y);
  fragment[3] = Scaled(fragment[3], second.x, second.y);
}

// The sum over the four lanes that share a row, in each of them.
__device__ inline float RowSum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// The sum over a warp, in every lane.
__device__ inline float WarpSum(float x) {
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffff, x, distance);
  return x;
}

// Begins to copy rows of a matrix in global memory into a tile. `stride` of the matrix is in elements, a multiple of 8
// like `from`. Rows from `there` on become zeros.
template <int kThreads, int kRows, int kColumns>
__device__ void BeginTile(const Tile<kColumns>& tile, const __nv_bfloat16* from, int64_t stride, int there) {
  constexpr int kPieces = kColumns / 8, kAtOnce = kThreads / kPieces;  // pieces of a row; rows of all threads
  static_assert(kThreads % kPieces == 0 && kRows % kAtOnce == 0);
  const int first = static_cast<int>(threadIdx.x) / kPieces, column = static_cast<int>(threadIdx.x) % kPieces * 8;
  const __nv_bfloat16* source = from + first * stride + column;
#pragma unroll
  for (int step = 0; step < kRows; step += kAtOnce) {
    // The address of a row that is not there would be outside of the matrix.
    const bool is_there = first + step < there;
    BeginCopy(tile.At(first + step, column), is_there ? source : from, is_there);
    source += kAtOnce * stride;
  }
}

// The same for floats.
template <int kThreads, int kCount>
__device__ void BeginFloats(float* to, const float* from) {
  static_assert(kCount % 4 == 0 && kCount <= kThreads * 4);
  const int at = static_cast<int>(threadIdx.x) * 4;
  if (at < kCount) BeginCopy(to + at, from + at, true);
}

}  // namespace planwright::executor::ops
