// RMS norm and its backward (rms_norm.h). A thread block has the whole width, eight channels in each thread, which
// keeps their weights in registers. It goes from row to row, a few at a time. While it computes, the next rows are
// under way.
#include "executor/kernels/rms_norm.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kRows = 2;  // taken at a time
constexpr int kMostThreads = static_cast<int>(kWidestRow) / kVector;
// Thread blocks of up to 384 threads that a multiprocessor holds at once, times the 132 multiprocessors of an H200.
// More rows than these can take at a time are dealt out in turn.
constexpr int64_t kForwardBlocks = 132 * 3, kBackwardBlocks = 132 * 2;

int64_t Blocks(const RowShape& shape, int64_t most) {
  const int64_t blocks = (shape.rows + kRows - 1) / kRows;
  return blocks < most ? blocks : most;
}

int Threads(const RowShape& shape) { return static_cast<int>((shape.width / kVector + kWarp - 1) / kWarp) * kWarp; }

using Slots = float[2][kRows][kWarp];

// Sums over all threads of a block, one for each of kRows rows; every thread gets them. The warps put their sums in
// slots, of which there are two sets in turn: a warp that is at its next sums already must not overwrite slots that
// another warp still reads.
class BlockSums {
 public:
  __device__ __forceinline__ explicit BlockSums(Slots& slots) : slots_(slots) {
    // Slots of warps that this block does not have. Nobody writes them later.
    if (threadIdx.x >= kWarp || threadIdx.x < blockDim.x / kWarp) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) slots_[0][r][threadIdx.x] = slots_[1][r][threadIdx.x] = 0;
  }
  __device__ __forceinline__ void operator()(float (&values)[kRows]) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      values[r] = WarpSum(values[r]);
      if (lane == 0) slots_[turn_][r][warp] = values[r];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRows; ++r) values[r] = WarpSum(slots_[turn_][r][lane]);
    turn_ ^= 1;
  }

 private:
  Slots& slots_;
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

__global__ void __launch_bounds__(kMostThreads)
    RmsNormKernel(const __nv_bfloat16* x, const __nv_bfloat16* weight, float eps, __nv_bfloat16* y, float* scale,
                  RowShape shape) {
  __shared__ Slots slots;
  BlockSums sum(slots);
  const ThreadWork work(shape);
  uint4 next[kRows];
  work.Load(x, work.first, shape.rows, next);
  float weights[kVector];
  work.LoadWeights(weight, weights);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    float values[kRows][kVector], squares[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Widen(next[r], values[r]);
      squares[r] = 0;
#pragma unroll
      for (int i = 0; i < kVector; ++i) squares[r] += values[r][i] * values[r][i];
    }
    work.Load(x, row + work.step, shape.rows, next);
    sum(squares);
    uint4* out = reinterpret_cast<uint4*>(y) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (row + r >= shape.rows) break;
      const float factor = rsqrtf(squares[r] / static_cast<float>(shape.width) + eps);
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[r][i] *= factor * weights[i];
      if (work.exists) out[r * work.row_vectors] = Narrow(values[r]);
      if (threadIdx.x == 0) scale[row + r] = factor;
    }
  }
}

// With u = x scale and du = dy weight: dx = (du - u mean(du u)) scale.
__global__ void __launch_bounds__(kMostThreads)
    RmsNormGradientKernel(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* scale,
                          const __nv_bfloat16* weight, __nv_bfloat16* dx, float* partials, RowShape shape) {
  __shared__ Slots slots;
  BlockSums sum(slots);
  const ThreadWork work(shape);
  uint4 next_dy[kRows], next_x[kRows];
  float next_scale[kRows];
  const auto load = [&](int64_t row) {
    work.Load(dy, row, shape.rows, next_dy);
    work.Load(x, row, shape.rows, next_x);
#pragma unroll
    for (int r = 0; r < kRows; ++r) next_scale[r] = row + r < shape.rows ? scale[row + r] : 0;
  };
  load(work.first);
  float weights[kVector], dweights[kVector] = {};
  work.LoadWeights(weight, weights);
  for (int64_t row = work.first; row < shape.rows; row += work.step) {
    uint4 now_dy[kRows], now_x[kRows];
    float factors[kRows], along[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) now_dy[r] = next_dy[r], now_x[r] = next_x[r], factors[r] = next_scale[r];
    load(row + work.step);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float dy_values[kVector], x_values[kVector];
      Widen(now_dy[r], dy_values);
      Widen(now_x[r], x_values);
      along[r] = 0;
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float term = dy_values[i] * x_values[i] * factors[r];
        dweights[i] += term;
        along[r] += term * weights[i];
      }
    }
    sum(along);
    uint4* out = reinterpret_cast<uint4*>(dx) + work.Vector(row);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (!work.exists || row + r >= shape.rows) break;
      float dy_values[kVector], x_values[kVector];
      Widen(now_dy[r], dy_values);
      Widen(now_x[r], x_values);
      const float mean = along[r] / static_cast<float>(shape.width);
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        dy_values[i] = (dy_values[i] * weights[i] - x_values[i] * factors[r] * mean) * factors[r];
      out[r * work.row_vectors] = Narrow(dy_values);
    }
  }
  if (partials == nullptr || !work.exists) return;
  float* terms = partials + blockIdx.x * shape.width + work.channel;
#pragma unroll
  for (int i = 0; i < kVector; ++i) terms[i] = dweights[i];
}

}  // namespace

void LaunchRmsNorm(const __nv_bfloat16* x, const __nv_bfloat16* weight, float eps, __nv_bfloat16* y, float* scale,
                   const RowShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(Blocks(shape, kForwardBlocks));
  RmsNormKernel<<<blocks, Threads(shape), 0, stream>>>(x, weight, eps, y, scale, shape);
}

int64_t RmsNormPartials(const RowShape& shape) { return Blocks(shape, kBackwardBlocks); }

void LaunchRmsNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* scale,
                           const __nv_bfloat16* weight, __nv_bfloat16* dx, float* partials, const RowShape& shape,
                           cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return;
  const auto blocks = static_cast<unsigned>(RmsNormPartials(shape));
  RmsNormGradientKernel<<<blocks, Threads(shape), 0, stream>>>(dy, x, scale, weight, dx, partials, shape);
}

}  // namespace planwright::executor::ops
