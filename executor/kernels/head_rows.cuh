// What the kernels on heads share (head_rows.h): which vectors of a head a thread has, the cosines and sines of rows,
// sums over heads.
#pragma once

#include "executor/kernels/head_rows.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {

constexpr int kMostPlanes = static_cast<int>(kWidestHead) / 2;

// The sum over the lanes of a head, the same bits in each of them.
template <int kLanes>
__device__ __forceinline__ float HeadSum(float value) {
#pragma unroll
  for (int apart = kLanes / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(kAllLanes, value, apart);
  return value;
}

// Floats in shared memory that are read a vector at a time. The first halves of all vectors come before the second
// ones, so threads with neighbouring vectors read neighbouring 16 bytes.
template <int kMost>
struct SharedVectors {
  float4 halves[2][kMost / kVector];

  __device__ __forceinline__ float& operator[](int i) {
    return reinterpret_cast<float*>(&halves[i / 4 % 2][i / kVector])[i % 4];
  }
  __device__ __forceinline__ void Read(int vector, float (&to)[kVector]) const {
    *reinterpret_cast<float4*>(to) = halves[0][vector];
    *reinterpret_cast<float4*>(to + 4) = halves[1][vector];
  }
};

// The two vectors of a thread in a head of every row. Of those that turn, they are both halves of 8 planes. One of them
// may not exist, or both.
struct TwoVectors {
  int row_vectors, head_at;  // vectors of a row, and of those before the head
  int first, second;         // within the head
  bool has_first, has_second, turns;

  // `pair`: of the head, from 0; there may be more threads than pairs.
  __device__ __forceinline__ TwoVectors(const HeadShape& shape, int64_t rotary, int head, int pair) {
    const auto vectors = static_cast<int>(shape.head_dim / kVector), half = static_cast<int>(rotary) / (2 * kVector);
    // Behind the vectors that turn, neighbours are a pair.
    first = pair < half ? pair : 2 * pair, second = pair < half ? pair + half : 2 * pair + 1;
    const bool exists = head < shape.heads();
    has_first = exists && first < vectors, has_second = exists && second < vectors;
    turns = pair < half && head < shape.turning();
    row_vectors = static_cast<int>(shape.heads()) * vectors, head_at = head * vectors;
  }
  // For a thread whose vectors pass, where the result takes over the memory of what is read: they are there already.
  __device__ __forceinline__ void HaveNone() { has_first = has_second = false; }
  __device__ __forceinline__ void Load(const uint4* data, int64_t row, bool wanted, uint4 (&to)[2]) const {
    const uint4* head = data + row * row_vectors + head_at;
    to[0] = wanted && has_first ? head[first] : uint4{0, 0, 0, 0};
    to[1] = wanted && has_second ? head[second] : uint4{0, 0, 0, 0};
  }
  __device__ __forceinline__ void Store(const uint4 (&from)[2], uint4* data, int64_t row) const {
    uint4* head = data + row * row_vectors + head_at;
    if (has_first) head[first] = from[0];
    if (has_second) head[second] = from[1];
  }
};

// The cosines and sines of all planes in a few rows, in shared memory.
template <int kRows>
struct PlaneTurns {
  SharedVectors<kMostPlanes> cosines[kRows], sines[kRows];

  // By all threads of a block, from row `first` on.
  __device__ __forceinline__ void Fill(const int64_t* positions, const RopeTurns& turns, int64_t first, int64_t rows) {
    const auto planes = static_cast<int>(turns.rotary) / 2;
#pragma unroll 1  // it ends after one turn or two, while vectors wait in registers
    for (int i = static_cast<int>(threadIdx.x); i < kRows * planes; i += static_cast<int>(blockDim.x)) {
      const int r = i / planes, plane = i % planes;
      if (first + r >= rows) break;
      // Whole turns go away in fp64; what is left, at most half a turn, is small enough for fp32.
      const int64_t position = positions[turns.axis_of_plane[plane] * rows + first + r];
      const double all = static_cast<double>(position) * turns.of_plane[plane];
      float sine, cosine;
      sincospif(static_cast<float>(2 * (all - rint(all))), &sine, &cosine);
      cosines[r][plane] = cosine * turns.amplitude, sines[r][plane] = sine * turns.amplitude;
    }
  }
  // a and b are the halves of the planes of `vector`.
  __device__ __forceinline__ void Turn(int r, int vector, float (&a)[kVector], float (&b)[kVector]) const {
    float cosine[kVector], sine[kVector];
    cosines[r].Read(vector, cosine);
    sines[r].Read(vector, sine);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float before = a[i];
      a[i] = before * cosine[i] - b[i] * sine[i];
      b[i] = b[i] * cosine[i] + before * sine[i];
    }
  }
};

// What a block writes of the partial sums of gradients of weights: for queries, where there are any, and for keys the
// sums over its heads, in their order, of terms [heads, width], of which the first head_dim are features. Its first
// head is number `before` of a row. By all threads of the block.
__device__ __forceinline__ void SumOverHeads(const float* terms, int heads, int width, int before,
                                             const HeadShape& shape, float* partials) {
  const auto head_dim = static_cast<int>(shape.head_dim), q_heads = static_cast<int>(shape.q_heads),
             turning = static_cast<int>(shape.turning());
  const int weights_here = (q_heads > 0) + (turning > q_heads);
  float* const sums = partials + (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * weights_here * head_dim;
  for (int i = static_cast<int>(threadIdx.x); i < weights_here * head_dim; i += static_cast<int>(blockDim.x)) {
    const bool of_q = q_heads > 0 && i < head_dim;
    const int from = of_q ? 0 : q_heads, to = of_q ? q_heads : turning;
    float sum = 0;
    for (int head = 0; head < heads; ++head) {
      if (before + head >= from && before + head < to) sum += terms[head * width + i % head_dim];
    }
    sums[i] = sum;
  }
}

}  // namespace planwright::executor::ops
