// What kernels on rows of the model's width share: a thread block has the whole width, eight channels in each thread,
// which keeps their weights in registers. It goes from row to row, a few at a time. While it computes, the next rows
// are under way.
#pragma once

#include "executor/kernels/rms_norm.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
constexpr int kRows = 2;  // taken at a time
constexpr int kMostThreads = static_cast<int>(kWidestRow) / kVector;
constexpr int64_t kMultiprocessors = 132;  // of an H200

inline int64_t Blocks(const RowShape& shape, int64_t most) {
  const int64_t blocks = (shape.rows + kRows - 1) / kRows;
  return blocks < most ? blocks : most;
}

inline int Threads(const RowShape& shape) {
  return static_cast<int>((shape.width / kVector + kWarp - 1) / kWarp) * kWarp;
}

// Thread blocks that the multiprocessors hold at once, if each holds `threads` of them: more would wait for these, and
// end alone. Narrow rows have more blocks, so that memory is busy. More rows than the blocks can take at a time are
// dealt out in turn.
inline int64_t BlocksHeld(const RowShape& shape, int64_t threads, int64_t least, int64_t most) {
  const int64_t fit = threads / Threads(shape);
  return kMultiprocessors * (fit < least ? least : fit > most ? most : fit);
}
// In the backward each block leaves partial sums, so there are few.
inline int64_t BackwardBlocks(const RowShape& shape) { return BlocksHeld(shape, 768, 2, 3); }

template <int count>
using Slots = float[2][count][kWarp];

// `count` sums over all threads of a block; every thread gets them. The warps put their sums in
// slots, of which there are two sets in turn: a warp that is at its next sums already must not overwrite slots that
// another warp still reads.
template <int count>
class BlockSums {
 public:
  __device__ __forceinline__ explicit BlockSums(Slots<count>& slots) : slots_(slots) {
    // Slots of warps that this block does not have. Nobody writes them later.
    if (threadIdx.x >= kWarp || threadIdx.x < blockDim.x / kWarp) return;
#pragma unroll
    for (int r = 0; r < count; ++r) slots_[0][r][threadIdx.x] = slots_[1][r][threadIdx.x] = 0;
  }
  __device__ __forceinline__ void operator()(float (&values)[count]) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int r = 0; r < count; ++r) {
      values[r] = WarpSum(values[r]);
      if (lane == 0) slots_[turn_][r][warp] = values[r];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < count; ++r) values[r] = WarpSum(slots_[turn_][r][lane]);
    turn_ ^= 1;
  }

 private:
  Slots<count>& slots_;
  int turn_ = 0;
};

// This thread's vector of one row after the other, from row `first` on.
struct ThreadWork {
  bool exists;  // the last threads may have none
  int64_t channel;
  int64_t first, step;  // this block's rows: kRows from `first`, from first + step, ...
  int64_t row_vectors;

  __device__ __forceinline__ explicit ThreadWork(const RowShape& shape)
      : channel(static_cast<int64_t>(threadIdx.x) * kVector), first(static_cast<int64_t>(blockIdx.x) * kRows),
        step(static_cast<int64_t>(gridDim.x) * kRows), row_vectors(shape.width / kVector) {
    exists = channel < shape.width;
  }
  __device__ __forceinline__ int64_t Vector(int64_t row) const { return row * row_vectors + threadIdx.x; }
  // Rows behind the last one are zero.
  __device__ __forceinline__ void Load(const __nv_bfloat16* data, int64_t from, int64_t rows,
                                       uint4 (&to)[kRows]) const {
    const uint4* vectors = reinterpret_cast<const uint4*>(data) + Vector(from);
#pragma unroll
    for (int r = 0; r < kRows; ++r) to[r] = exists && from + r < rows ? vectors[r * row_vectors] : uint4{0, 0, 0, 0};
  }
  __device__ __forceinline__ void LoadWeights(const __nv_bfloat16* weight, float (&to)[kVector]) const {
#pragma unroll
    for (int i = 0; i < kVector; ++i) to[i] = 0;
    if (exists) LoadParameter(weight + channel, to);
  }
};

}  // namespace planwright::executor::ops
