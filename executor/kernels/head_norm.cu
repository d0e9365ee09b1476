// Norms of heads and their backward (head_rows.h). A few lanes have a head, a vector of 8 features each, and keep its
// weights in registers while they go from row to row. Neighbouring lanes have neighbouring heads of the same row.
#include <type_traits>

#include "executor/kernels/head_rows.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kThreads = 256;
constexpr int kForwardRows = 4, kBackwardRows = 2;  // taken at a time
// Thread blocks of the backward, four on each of the 132 multiprocessors of an H200: ops.def counts their partial sums.
constexpr int64_t kBackwardBlocks = 132 * 4;

// This thread's head, and its vector of it.
template <int kLanes>
struct ThreadHead {
  int64_t row_vectors;
  int head, lane;
  bool exists, normed;
  int64_t at;  // of its vector in a row

  __device__ __forceinline__ explicit ThreadHead(const HeadShape& shape) {
    const auto vectors = static_cast<int>(shape.head_dim / kVector), heads = static_cast<int>(shape.heads());
    head = static_cast<int>(blockIdx.y * (kThreads / kLanes) + threadIdx.x / kLanes);
    lane = static_cast<int>(threadIdx.x) % kLanes;
    exists = head < heads && lane < vectors;
    normed = exists && head < static_cast<int>(shape.turning());
    row_vectors = static_cast<int64_t>(heads) * vectors;
    at = static_cast<int64_t>(head) * vectors + lane;
  }
  __device__ __forceinline__ uint4 Load(const uint4* data, int64_t row, const HeadShape& shape, bool wanted) const {
    return wanted && row < shape.rows ? data[row * row_vectors + at] : uint4{0, 0, 0, 0};
  }
  __device__ __forceinline__ void LoadWeights(HeadWeights weights, const HeadShape& shape, float (&to)[kVector]) const {
#pragma unroll
    for (int i = 0; i < kVector; ++i) to[i] = 0;
    if (normed) LoadParameter((head < shape.q_heads ? weights.q : weights.k) + lane * kVector, to);
  }
};

template <int kLanes>
__global__ void __launch_bounds__(kThreads)
    HeadNormKernel(const uint4* x, HeadWeights weights, float eps, uint4* y, float* scale, HeadShape shape) {
  const ThreadHead<kLanes> own(shape);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kForwardRows;
  uint4 raw[kForwardRows];
#pragma unroll
  for (int r = 0; r < kForwardRows; ++r) raw[r] = own.Load(x, first + r, shape, own.exists);
  float weight[kVector];
  own.LoadWeights(weights, shape, weight);
#pragma unroll
  for (int r = 0; r < kForwardRows; ++r) {
    const int64_t row = first + r;
    float values[kVector], squares = 0;
    Widen(raw[r], values);
#pragma unroll
    for (int i = 0; i < kVector; ++i) squares += values[i] * values[i];
    const float factor = rsqrtf(HeadSum<kLanes>(squares) / static_cast<float>(shape.head_dim) + eps);
    if (!own.exists || row >= shape.rows) continue;
    if (own.normed) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[i] *= factor * weight[i];
      raw[r] = Narrow(values);
      if (own.lane == 0) scale[row * shape.turning() + own.head] = factor;
    }
    y[row * own.row_vectors + own.at] = raw[r];
  }
}

// With u = x scale and du = dy weight: dx = (du - u mean(du u)) scale.
template <int kLanes>
__global__ void __launch_bounds__(kThreads)
    HeadNormGradientKernel(const uint4* dy, const uint4* x, const float* scale, HeadWeights weights, uint4* dx,
                           float* partials, HeadShape shape) {
  const ThreadHead<kLanes> own(shape);
  float weight[kVector], dweight[kVector] = {};
  own.LoadWeights(weights, shape, weight);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kBackwardRows;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kBackwardRows; first < shape.rows; first += step) {
    uint4 raw_dy[kBackwardRows], raw_x[kBackwardRows];
    float factors[kBackwardRows];
#pragma unroll
    for (int r = 0; r < kBackwardRows; ++r) {
      const int64_t row = first + r;
      raw_dy[r] = own.Load(dy, row, shape, own.exists);
      raw_x[r] = own.Load(x, row, shape, own.normed);
      factors[r] = own.normed && row < shape.rows ? scale[row * shape.turning() + own.head] : 0;
    }
#pragma unroll
    for (int r = 0; r < kBackwardRows; ++r) {
      float dy_values[kVector], x_values[kVector], along = 0;
      Widen(raw_dy[r], dy_values);
      Widen(raw_x[r], x_values);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float term = dy_values[i] * x_values[i] * factors[r];
        dweight[i] += term;
        along += term * weight[i];
      }
      along = HeadSum<kLanes>(along) / static_cast<float>(shape.head_dim);
      if (own.normed) {
#pragma unroll
        for (int i = 0; i < kVector; ++i)
          dy_values[i] = (dy_values[i] * weight[i] - x_values[i] * factors[r] * along) * factors[r];
        raw_dy[r] = Narrow(dy_values);
      }
      if (own.exists && first + r < shape.rows) dx[(first + r) * own.row_vectors + own.at] = raw_dy[r];
    }
  }
  if (partials == nullptr) return;

  __shared__ float terms[kThreads * kVector];  // [heads of the block, kLanes * kVector]
#pragma unroll
  for (int i = 0; i < kVector; ++i) terms[threadIdx.x * kVector + i] = dweight[i];
  __syncthreads();
  constexpr int kHeads = kThreads / kLanes;
  SumOverHeads(terms, kHeads, kLanes * kVector, static_cast<int>(blockIdx.y) * kHeads, shape, partials);
}

// Calls launch with the number of lanes of a head.
template <typename Launch>
void WithLanes(int64_t head_dim, Launch launch) {
  if (head_dim <= 8 * kVector) return launch(std::integral_constant<int, 8>());
  if (head_dim <= 16 * kVector) return launch(std::integral_constant<int, 16>());
  launch(std::integral_constant<int, 32>());
}
static_assert(kWidestHead == kWarp * kVector);

int64_t HeadParts(const HeadShape& shape) {
  int64_t heads_of_block = 0;
  WithLanes(shape.head_dim, [&](auto lanes) { heads_of_block = kThreads / decltype(lanes)::value; });
  return (shape.heads() + heads_of_block - 1) / heads_of_block;
}

int64_t RowParts(const HeadShape& shape) {
  const int64_t parts = HeadParts(shape), most = kBackwardBlocks / (parts > 0 ? parts : 1),
                needed = (shape.rows + kBackwardRows - 1) / kBackwardRows;
  return most < 1 ? 1 : most < needed ? most : needed;
}

}  // namespace

void LaunchHeadNorm(const __nv_bfloat16* x, HeadWeights weights, float eps, __nv_bfloat16* y, float* scale,
                    const HeadShape& shape, cudaStream_t stream) {
  if (shape.empty()) return;
  const dim3 blocks(static_cast<unsigned>((shape.rows + kForwardRows - 1) / kForwardRows),
                    static_cast<unsigned>(HeadParts(shape)));
  WithLanes(shape.head_dim, [&](auto lanes) {
    HeadNormKernel<decltype(lanes)::value>
        <<<blocks, kThreads, 0, stream>>>(Vectors(x), weights, eps, Vectors(y), scale, shape);
  });
}

int64_t HeadNormPartials(const HeadShape& shape) { return shape.empty() ? 0 : RowParts(shape) * HeadParts(shape); }

void LaunchHeadNormGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, const float* scale, HeadWeights weights,
                            __nv_bfloat16* dx, float* partials, const HeadShape& shape, cudaStream_t stream) {
  if (shape.empty()) return;
  const dim3 blocks(static_cast<unsigned>(RowParts(shape)), static_cast<unsigned>(HeadParts(shape)));
  WithLanes(shape.head_dim, [&](auto lanes) {
    HeadNormGradientKernel<decltype(lanes)::value>
        <<<blocks, kThreads, 0, stream>>>(Vectors(dy), Vectors(x), scale, weights, Vectors(dx), partials, shape);
  });
}

}  // namespace planwright::executor::ops
