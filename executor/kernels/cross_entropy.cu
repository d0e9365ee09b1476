// Cross entropy: a thread block for each row of logits.
#include <cmath>

#include "executor/kernels/cross_entropy.h"

namespace planwright::executor::ops {
namespace {

// A row of 131,072 columns is 32 accesses of 16 bytes for each thread, of which kAtOnce are in flight.
constexpr int kThreads = 512, kWarps = kThreads / 32, kAtOnce = 4, kWidth = 8;
constexpr unsigned kAllLanes = 0xffffffff;

struct Row {
  const uint4* vectors;
  int count;  // of vectors
};

__device__ Row RowOf(const Logits& logits, int64_t row) {
  return {reinterpret_cast<const uint4*>(logits.elements + row * logits.columns), logits.columns / kWidth};
}

// Calls work(place, vector) for the vectors of this thread. Several are read before the first is worked on.
template <typename Work>
__device__ void EachVector(Row row, Work work) {
  for (int first = static_cast<int>(threadIdx.x); first < row.count; first += kThreads * kAtOnce) {
    uint4 vectors[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * kThreads < row.count) vectors[i] = row.vectors[first + i * kThreads];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * kThreads < row.count) work(first + i * kThreads, vectors[i]);
    }
  }
}

// A bf16 number is the upper half of the same number in fp32.
__device__ void Widen(const uint4& vector, float (&x)[kWidth]) {
  const unsigned words[] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) {
    x[2 * i] = __uint_as_float(words[i] << 16);
    x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000);
  }
}

__device__ uint4 Rounded(const float (&x)[kWidth]) {
  unsigned words[kWidth / 2];
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
    words[i] = *reinterpret_cast<const unsigned*>(&pair);
  }
  return {words[0], words[1], words[2], words[3]};
}

// exp(x - m). The difference is formed before the factor, so that large logits lose nothing. The instruction is right
// to 2^-22.
__device__ float ExpOfDifference(float x, float m) {
  constexpr float kLog2OfE = 1.44269504f;
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"((x - m) * kLog2OfE));
  return result;
}

struct Largest {
  static constexpr float kNone = -INFINITY;
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }  // NaN wins
};
struct Sum {
  static constexpr float kNone = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Combines a number of each thread of the block. Thread 0 has the result.
template <typename Combine>
__device__ float OverBlock(float value, Combine combine) {
  __shared__ float of_warps[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(kAllLanes, value, step));
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  if (warp > 0) return value;
  value = lane < kWarps ? of_warps[lane] : Combine::kNone;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(kAllLanes, value, step));
  return value;
}

template <typename T>
__device__ T ValueOfRow(const TokenValues<T>& values, int64_t row, int64_t samples) {
  return values.elements[row % samples * values.sample_stride + row / samples * values.position_stride];
}

// The column of the row's label; -1: it is in none.
__device__ int LabelColumn(const TokenLabels& labels, const Logits& logits, int64_t row) {
  const int64_t column = ValueOfRow(labels.ids, row, logits.samples) - labels.first_id;
  return column >= 0 && column < logits.columns ? static_cast<int>(column) : -1;
}

__global__ void __launch_bounds__(kThreads) MaximaKernel(Logits logits, float* m) {
  const int64_t row = blockIdx.x;
  __nv_bfloat162 largest = __float2bfloat162_rn(-INFINITY);
  EachVector(RowOf(logits, row), [&](int, const uint4& vector) {
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&vector);
#pragma unroll
    for (int i = 0; i < kWidth / 2; ++i) largest = __hmax2_nan(largest, pairs[i]);
  });
  const float result = OverBlock(Largest()(__low2float(largest), __high2float(largest)), Largest());
  if (threadIdx.x == 0) m[row] = result;
}

__global__ void __launch_bounds__(kThreads)
    SumsKernel(Logits logits, const float* maxima, TokenLabels labels, float* sums) {
  const int64_t row = blockIdx.x, rows = gridDim.x;
  const float m = maxima[row];
  float sum = 0;
  EachVector(RowOf(logits, row), [&](int, const uint4& vector) {
    float x[kWidth];
    Widen(vector, x);
#pragma unroll
    for (float& one : x) one = ExpOfDifference(one, m);
    sum += ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  });
  sum = OverBlock(sum, Sum());
  if (threadIdx.x > 0) return;
  const int label = LabelColumn(labels, logits, row);
  sums[row] = sum;
  sums[rows + row] = label < 0 ? 0 : __bfloat162float(logits.elements[row * logits.columns + label]) - m;
}

__global__ void __launch_bounds__(kThreads)
    GradientsKernel(Logits logits, const float* maxima, const float* sums, TokenLabels labels, TokenValues<float> masks,
                    __nv_bfloat16* gradients) {
  const int64_t row = blockIdx.x;
  const float m = maxima[row], mask = ValueOfRow(masks, row, logits.samples), share = mask / sums[row];
  const int label = LabelColumn(labels, logits, row);
  const int label_vector = label < 0 ? -1 : label / kWidth;
  uint4* out = reinterpret_cast<uint4*>(gradients + row * logits.columns);
  EachVector(RowOf(logits, row), [&](int place, const uint4& vector) {
    float x[kWidth];
    Widen(vector, x);
#pragma unroll
    for (float& one : x) one = ExpOfDifference(one, m) * share;
    if (place == label_vector) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) x[i] -= i == label % kWidth ? mask : 0;
    }
    out[place] = Rounded(x);
  });
}

unsigned RowsOf(const Logits& logits) { return static_cast<unsigned>(logits.positions * logits.samples); }

}  // namespace

void LaunchLogitMaxima(const Logits& logits, float* m, cudaStream_t stream) {
  if (RowsOf(logits) == 0) return;
  MaximaKernel<<<RowsOf(logits), kThreads, 0, stream>>>(logits, m);
}

void LaunchLogitSums(const Logits& logits, const float* m, const TokenLabels& labels, float* sums,
                     cudaStream_t stream) {
  if (RowsOf(logits) == 0) return;
  SumsKernel<<<RowsOf(logits), kThreads, 0, stream>>>(logits, m, labels, sums);
}

void LaunchLogitGradients(const Logits& logits, const float* m, const float* sums, const TokenLabels& labels,
                          const TokenValues<float>& mask, __nv_bfloat16* gradients, cudaStream_t stream) {
  if (RowsOf(logits) == 0) return;
  GradientsKernel<<<RowsOf(logits), kThreads, 0, stream>>>(logits, m, sums, labels, mask, gradients);
}

}  // namespace planwright::executor::ops
