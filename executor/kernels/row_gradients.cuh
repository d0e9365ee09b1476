// What backward kernels on rows of the model's width share (wide_rows.cuh). Each thread block leaves one row of partial
// sums of the gradients of weights, so blocks are few and large: teams of their threads take rows of their own. What is
// read is on its way to shared memory, so that it takes no registers.
#pragma once

#include "executor/kernels/tensor_core.cuh"
#include "executor/kernels/wide_rows.cuh"

namespace planwright::executor::ops {

constexpr int kFewThreads = 384;  // of a block with teams

// A multiprocessor has registers for two blocks of few threads, or 768 threads in all.
template <int threads>
constexpr int kHeldBlocks = threads == kFewThreads ? 2 : 1;
template <int threads>
constexpr int kTeams = threads == kFewThreads ? kMostTeams : 1;

inline bool HasFewThreads(const RowShape& shape) { return Threads(shape) <= kFewThreads; }

inline int Teams(const RowShape& shape) {
  const int fit = kFewThreads / Threads(shape);
  return fit < 1 ? 1 : fit > kMostTeams ? kMostTeams : fit;
}

// The number of blocks, which is that of rows of partial sums.
inline int64_t GradientBlocks(const RowShape& shape) {
  const int teams = Teams(shape);
  const int64_t fit = 768 / (teams * Threads(shape)), rows = teams * kRows;
  const int64_t most = kMultiprocessors * (fit < 1 ? 1 : fit), needed = (shape.rows + rows - 1) / rows;
  return needed < most ? needed : most;
}

// Rows of `count` tensors on their way to shared memory. Each thread copies what it reads itself, so none waits for
// another.
template <int count>
class RowsAhead {
 public:
  static int64_t Bytes(int threads) { return int64_t{2} * count * kRows * threads * sizeof(uint4); }

  __device__ __forceinline__ RowsAhead(uint4* shared, const ThreadWork<>& work, int64_t rows)
      : work_(work), rows_(rows), threads_(static_cast<int>(blockDim.x * blockDim.y)),
        now_(shared + threadIdx.y * blockDim.x + threadIdx.x), next_(now_ + count * kRows * threads_) {}

  // Begins to copy the rows from `row` on. Rows behind the last one are zero.
  __device__ __forceinline__ void Begin(const __nv_bfloat16* const (&tensors)[count], int64_t row) {
    const int64_t vector = work_.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const bool there = work_.exists && row + r < rows_;
#pragma unroll
      for (int t = 0; t < count; ++t) {
        const uint4* from = reinterpret_cast<const uint4*>(tensors[t]);
        BeginCopy(next_ + (t * kRows + r) * threads_, there ? from + vector + r * work_.row_vectors : from, there);
      }
    }
  }
  // Waits for the rows that were begun, which may be read then, and begins the ones from `row` on.
  __device__ __forceinline__ void Turn(const __nv_bfloat16* const (&tensors)[count], int64_t row) {
    WaitForCopies();
    uint4* const done = next_;
    next_ = now_, now_ = done;
    Begin(tensors, row);
  }
  __device__ __forceinline__ void Read(int tensor, int r, float (&values)[kVector]) const {
    Widen(now_[(tensor * kRows + r) * threads_], values);
  }

 private:
  const ThreadWork<>& work_;
  int64_t rows_;
  int threads_;
  uint4 *now_, *next_;
};

// Writes this block's row of partial sums: `sums` of its threads, added up over teams. Sums of the same channels stand
// `width` apart. All threads call it once, at their end; `shared` is the memory of RowsAhead.
template <int count>
__device__ __forceinline__ void LeaveSums(float (&sums)[count][kVector], uint4* shared, const ThreadWork<>& work,
                                          const RowShape& shape, float* partials) {
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  float* const all = reinterpret_cast<float*>(shared) + threadIdx.x;
  if (blockDim.y > 1) {
    WaitForCopies();
    __syncthreads();
    if (threadIdx.y > 0) {
#pragma unroll
      for (int n = 0; n < count; ++n) {
#pragma unroll
        for (int i = 0; i < kVector; ++i) all[(n * kVector + i) * threads + threadIdx.y * blockDim.x] = sums[n][i];
      }
    }
    __syncthreads();
  }
  if (threadIdx.y > 0 || !work.exists) return;
  float* const out = partials + blockIdx.x * count * shape.width + work.channel;
#pragma unroll
  for (int n = 0; n < count; ++n) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      for (int team = 1; team < static_cast<int>(blockDim.y); ++team)
        sums[n][i] += all[(n * kVector + i) * threads + team * blockDim.x];
      out[n * shape.width + i] = sums[n][i];
    }
  }
}

// Launches a kernel that reads rows of `count` tensors by RowsAhead. A refusal shows as an error of the launch.
template <int count, typename... Parameters, typename... Arguments>
void LaunchRowGradient(void (*kernel)(Parameters...), const RowShape& shape, cudaStream_t stream,
                       Arguments... arguments) {
  const dim3 threads(Threads(shape), Teams(shape));
  const auto bytes = static_cast<int>(RowsAhead<count>::Bytes(static_cast<int>(threads.x * threads.y)));
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<static_cast<unsigned>(GradientBlocks(shape)), threads, bytes, stream>>>(arguments...);
}

}  // namespace planwright::executor::ops
