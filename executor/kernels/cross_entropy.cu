// Cross entropy: a thread block for each row of logits.
#include <cfloat>
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
  int ids;    // of numbers: those behind them are no logits
};

__device__ Row RowOf(const Logits& logits, int64_t row) {
  return {reinterpret_cast<const uint4*>(logits.elements + row * logits.columns), logits.columns / kWidth, logits.ids};
}

// The vector at `index` of a row, with -inf in place of what is no logit.
__device__ uint4 LogitsAt(const Row& row, int index) {
  uint4 vector = row.vectors[index];
  const int ids = row.ids - index * kWidth;
  if (ids >= kWidth) return vector;
  constexpr unsigned kUpper = 0xff800000, kLower = 0x0000ff80;  // -inf
  unsigned* words[] = {&vector.x, &vector.y, &vector.z, &vector.w};
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) {
    if (2 * i >= ids) *words[i] = (*words[i] & 0xffff0000) | kLower;
    if (2 * i + 1 >= ids) *words[i] = (*words[i] & 0x0000ffff) | kUpper;
  }
  return vector;
}

// Calls work(first, vectors) for the vectors of this thread, kAtOnce at a time: those at first + i kThreads. All are
// read before work begins. Behind the end of the row they are `padding`.
template <typename Work>
__device__ void EachBatch(Row row, uint4 padding, Work work) {
  for (int first = static_cast<int>(threadIdx.x); first < row.count; first += kThreads * kAtOnce) {
    uint4 vectors[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      vectors[i] = padding;
      if (first + i * kThreads < row.count) vectors[i] = LogitsAt(row, first + i * kThreads);
    }
    work(first, vectors);
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

__device__ float Larger(float a, float b) { return a > b || a != a ? a : b; }  // NaN wins

// Holds the largest of some logits, and the sum of exp(logit - largest). Without a logit, or with only -inf, they are
// kNone and 0. kNone is finite, so no difference of two -inf is formed, and less than every finite bf16 number.
struct ExpSum {
  static constexpr float kNone = -FLT_MAX;
  float largest, sum;
};

__device__ ExpSum Joined(ExpSum a, ExpSum b) {
  const float largest = Larger(a.largest, b.largest);
  return {largest, a.sum * ExpOfDifference(a.largest, largest) + b.sum * ExpOfDifference(b.largest, largest)};
}

// Joins those of the lanes of a warp. Lane 0 has the result.
__device__ ExpSum OverWarp(ExpSum mine) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    mine = Joined(mine, {__shfl_xor_sync(kAllLanes, mine.largest, step), __shfl_xor_sync(kAllLanes, mine.sum, step)});
  }
  return mine;
}

// Joins those of the threads of the block. Thread 0 has the result.
__device__ ExpSum OverBlock(ExpSum mine) {
  __shared__ ExpSum of_warps[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  mine = OverWarp(mine);
  if (lane == 0) of_warps[warp] = mine;
  __syncthreads();
  return warp > 0 ? mine : OverWarp(lane < kWarps ? of_warps[lane] : ExpSum{ExpSum::kNone, 0});
}

template <typename T>
__device__ T ValueOfRow(const TokenValues<T>& values, int64_t row, int64_t samples) {
  return values.elements[row % samples * values.sample_stride + row / samples * values.position_stride];
}

// The largest number of some vectors; NaN if one is NaN.
__device__ float LargestOf(const uint4 (&vectors)[kAtOnce]) {
  __nv_bfloat162 largest[kAtOnce];
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i) {
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&vectors[i]);
    largest[i] = __hmax2_nan(__hmax2_nan(pairs[0], pairs[1]), __hmax2_nan(pairs[2], pairs[3]));
  }
#pragma unroll
  for (int i = 1; i < kAtOnce; ++i) largest[0] = __hmax2_nan(largest[0], largest[i]);
  return Larger(__low2float(largest[0]), __high2float(largest[0]));
}

// The column of the row's label; -1: it is in none.
__device__ int LabelColumn(const TokenLabels& labels, const Logits& logits, int64_t row) {
  const int64_t column = ValueOfRow(labels.ids, row, logits.samples) - labels.first_id;
  return column >= 0 && column < logits.columns ? static_cast<int>(column) : -1;
}

// The sum is relative to the largest logit so far. It is rescaled when a batch of vectors has a larger one.
__global__ void __launch_bounds__(kThreads) PartsKernel(Logits logits, TokenLabels labels, float* m, float* parts) {
  constexpr unsigned kNothing = 0xff80ff80;  // -inf twice
  const uint4 padding = {kNothing, kNothing, kNothing, kNothing};
  const int64_t row = blockIdx.x, rows = gridDim.x;
  ExpSum mine = {ExpSum::kNone, 0};
  EachBatch(RowOf(logits, row), padding, [&](int, const uint4(&vectors)[kAtOnce]) {
    const float largest = Larger(LargestOf(vectors), mine.largest);
    if (largest != mine.largest) mine.sum *= ExpOfDifference(mine.largest, largest);
    mine.largest = largest;
#pragma unroll
    for (const uint4& vector : vectors) {
      float x[kWidth];
      Widen(vector, x);
#pragma unroll
      for (float& one : x) one = ExpOfDifference(one, largest);
      mine.sum += ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
    }
  });
  mine = OverBlock(mine);
  if (threadIdx.x > 0) return;
  const int label = LabelColumn(labels, logits, row);
  m[row] = parts[rows + row] = mine.largest == ExpSum::kNone ? -INFINITY : mine.largest;
  parts[row] = mine.sum;
  parts[2 * rows + row] = label < 0 ? 0 : __bfloat162float(logits.elements[row * logits.columns + label]);
  parts[3 * rows + row] = label < 0 ? 0 : 1;
}

// A thread for each row. Not ExpOfDifference: nothing is won here, and one rank alone must get exactly its own sum.
__global__ void SumsKernel(const float* parts, const float* maxima, int64_t rows, float* sums) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float m = maxima[row];
  sums[row] = parts[row] * expf(parts[rows + row] - m);
  sums[rows + row] = parts[3 * rows + row] == 0 ? 0 : parts[2 * rows + row] - m;
}

__global__ void __launch_bounds__(kThreads)
    GradientsKernel(Logits logits, const float* maxima, const float* sums, TokenLabels labels, TokenValues<float> masks,
                    __nv_bfloat16* gradients) {
  const int64_t row = blockIdx.x;
  const float m = maxima[row], mask = ValueOfRow(masks, row, logits.samples), share = mask / sums[row];
  const int label = LabelColumn(labels, logits, row);
  const int label_vector = label < 0 ? -1 : label / kWidth;
  uint4* out = reinterpret_cast<uint4*>(gradients + row * logits.columns);
  const Row in = RowOf(logits, row);
  EachBatch(in, {}, [&](int first, const uint4(&vectors)[kAtOnce]) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int index = first + i * kThreads;
      if (index >= in.count) return;
      float x[kWidth];
      Widen(vectors[i], x);
#pragma unroll
      for (float& one : x) one = ExpOfDifference(one, m) * share;
      if (index == label_vector) {
#pragma unroll
        for (int k = 0; k < kWidth; ++k) x[k] -= k == label % kWidth ? mask : 0;
      }
      out[index] = Rounded(x);
    }
  });
}

unsigned RowsOf(const Logits& logits) { return static_cast<unsigned>(logits.positions * logits.samples); }

}  // namespace

void LaunchLogitParts(const Logits& logits, const TokenLabels& labels, float* m, float* parts, cudaStream_t stream) {
  if (RowsOf(logits) == 0) return;
  PartsKernel<<<RowsOf(logits), kThreads, 0, stream>>>(logits, labels, m, parts);
}

void LaunchSumsOfParts(const float* parts, const float* m, int64_t rows, float* sums, cudaStream_t stream) {
  if (rows == 0) return;
  SumsKernel<<<static_cast<unsigned>((rows + kThreads - 1) / kThreads), kThreads, 0, stream>>>(parts, m, rows, sums);
}

void LaunchLogitGradients(const Logits& logits, const float* m, const float* sums, const TokenLabels& labels,
                          const TokenValues<float>& mask, __nv_bfloat16* gradients, cudaStream_t stream) {
  if (RowsOf(logits) == 0) return;
  GradientsKernel<<<RowsOf(logits), kThreads, 0, stream>>>(logits, m, sums, labels, mask, gradients);
}

}  // namespace planwright::executor::ops
