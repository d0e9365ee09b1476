// What kernels on rows of the model's width share: a thread block, or a team of its threads, has the whole width, eight
// channels in each thread, which keeps their weights in registers. It goes from row to row, a few at a time. While it
// computes, the next rows are under way.
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

// Sums over the lanes of a warp: lane l gets the one of value l / (32 / count). `count` is 1, 2, 4, ... While lanes
// halve, so do the values of each: it takes fewer moves than a sum for each value. Values are overwritten.
template <int count>
__device__ __forceinline__ float WarpSums(float (&values)[count]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int apart = kWarp / 2;
#pragma unroll
  for (int half = count / 2; half > 0; half /= 2, apart /= 2) {
    const bool upper = (lane & apart) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float kept = upper ? values[i + half] : values[i], given = upper ? values[i] : values[i + half];
      values[i] = kept + __shfl_xor_sync(kAllLanes, given, apart);
    }
  }
#pragma unroll
  for (; apart > 0; apart /= 2) values[0] += __shfl_xor_sync(kAllLanes, values[0], apart);
  return values[0];
}

// Threads of a block may be dealt out to teams, each with rows of its own: threadIdx.y is the team.
constexpr int kMostTeams = 4;

template <int count>
struct alignas(16) Slots {
  float sums[2][count][kWarp];
};

// `count` sums over all threads of a team; every thread gets them, the same bits. The warps put their sums in slots, of
// which there are two sets in turn: a warp that is at its next sums already must not overwrite slots that another warp
// still reads.
template <int count, int teams = 1>
class TeamSums {
 public:
  __device__ __forceinline__ explicit TeamSums(Slots<count> (&slots)[teams]) : slots_(slots[threadIdx.y]) {
    // Slots of warps that this team does not have. Nobody writes them later.
    if (threadIdx.x >= kWarp || threadIdx.x < blockDim.x / kWarp) return;
#pragma unroll
    for (int r = 0; r < count; ++r) slots_.sums[0][r][threadIdx.x] = slots_.sums[1][r][threadIdx.x] = 0;
  }
  __device__ __forceinline__ void operator()(float (&values)[count]) {
    constexpr int kLanesOfOne = kWarp / count;
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    float(&slots)[count][kWarp] = slots_.sums[turn_];
    const float of_warp = WarpSums(values);
    if (lane % kLanesOfOne == 0) slots[lane / kLanesOfOne][warp] = of_warp;
    Meet();
    if (blockDim.x > kFewWarps * kWarp) {
#pragma unroll
      for (int r = 0; r < count; ++r) values[r] = WarpSum(slots[r][lane]);
    } else {
      // Reading all slots takes less than moves between lanes.
#pragma unroll
      for (int r = 0; r < count; ++r) values[r] = SumOfFour(slots[r]);
      if (blockDim.x > 4 * kWarp) {
#pragma unroll
        for (int r = 0; r < count; ++r) values[r] += SumOfFour(slots[r] + 4);
      }
    }
    turn_ ^= 1;
  }

 private:
  static constexpr int kFewWarps = 8;

  __device__ __forceinline__ static float SumOfFour(const float* slots) {
    const float4 four = *reinterpret_cast<const float4*>(slots);
    return (four.x + four.y) + (four.z + four.w);
  }
  // Waits for the warps of this team. Numbers of barriers are written out: of one that is computed, a block has all.
  __device__ __forceinline__ static void Meet() {
    if (teams == 1 || blockDim.y == 1) {
      __syncthreads();
    } else if (threadIdx.y == 0) {
      asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory");
    } else if (threadIdx.y == 1) {
      asm volatile("bar.sync 2, %0;" ::"r"(blockDim.x) : "memory");
    } else if (threadIdx.y == 2) {
      asm volatile("bar.sync 3, %0;" ::"r"(blockDim.x) : "memory");
    } else {
      asm volatile("bar.sync 4, %0;" ::"r"(blockDim.x) : "memory");
    }
  }

  Slots<count>& slots_;
  int turn_ = 0;
};

// This thread's vector of one row after the other, from row `first` on, so many rows at a time.
template <int at_once = kRows>
struct ThreadWork {
  bool exists;  // the last threads may have none
  int64_t channel;
  int64_t first, step;  // this team's rows: at_once from `first`, from first + step, ...
  int64_t row_vectors;

  __device__ __forceinline__ explicit ThreadWork(const RowShape& shape)
      : channel(static_cast<int64_t>(threadIdx.x) * kVector),
        first((static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y) * at_once),
        step(static_cast<int64_t>(gridDim.x) * blockDim.y * at_once), row_vectors(shape.width / kVector) {
    exists = channel < shape.width;
  }
  __device__ __forceinline__ int64_t Vector(int64_t row) const { return row * row_vectors + threadIdx.x; }
  // Rows behind the last one are zero.
  __device__ __forceinline__ void Load(const __nv_bfloat16* data, int64_t from, int64_t rows,
                                       uint4 (&to)[at_once]) const {
    const uint4* vectors = reinterpret_cast<const uint4*>(data) + Vector(from);
#pragma unroll
    for (int r = 0; r < at_once; ++r) to[r] = exists && from + r < rows ? vectors[r * row_vectors] : uint4{0, 0, 0, 0};
  }
  __device__ __forceinline__ void LoadWeights(const __nv_bfloat16* weight, float (&to)[kVector]) const {
#pragma unroll
    for (int i = 0; i < kVector; ++i) to[i] = 0;
    if (exists) LoadParameter(weight + channel, to);
  }
};

}  // namespace planwright::executor::ops
