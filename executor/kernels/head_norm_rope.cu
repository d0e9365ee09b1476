// The norm of heads with the rotary embedding behind it, and the backward of both (head_rows.h), in one pass each. A
// thread has two vectors of a head, as in rope.cu, so planes turn in registers. Between the two nothing is rounded.
#include <type_traits>

#include "executor/kernels/head_rows.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kMostThreads = 256;
constexpr int kForwardRows = 4, kBackwardRows = 2;  // taken at a time

// The weights of queries and of keys, in shared memory. In parameters they may lie at any address.
struct SharedWeights {
  __align__(16) __nv_bfloat16 of[2][kWidestHead];

  // By all threads of a block.
  __device__ __forceinline__ void Fill(HeadWeights weights, const HeadShape& shape) {
    const auto head_dim = static_cast<int>(shape.head_dim);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < head_dim; i += static_cast<int>(blockDim.x)) {
      if (weights.q != nullptr) of[0][i] = weights.q[i];
      if (weights.k != nullptr) of[1][i] = weights.k[i];
    }
  }
};

// This thread's two vectors of its head. Lanes without any have zeros, and take part in sums over the head.
template <int kLanes>
struct NormedVectors : TwoVectors {
  int head, lane;
  bool normed;

  __device__ __forceinline__ NormedVectors(const HeadShape& shape, int64_t rotary)
      : TwoVectors(shape, rotary, Head(), static_cast<int>(threadIdx.x) % kLanes), head(Head()),
        lane(static_cast<int>(threadIdx.x) % kLanes), normed(head < static_cast<int>(shape.turning())) {}

  __device__ __forceinline__ static int Head() {
    return static_cast<int>(blockIdx.y * (blockDim.x / kLanes) + threadIdx.x / kLanes);
  }
  // Of both vectors. 0 for what does not exist or is not normed.
  __device__ __forceinline__ void ReadWeights(const SharedWeights& weights, const HeadShape& shape,
                                              uint4 (&to)[2]) const {
    const auto* of_head = reinterpret_cast<const uint4*>(weights.of[head < static_cast<int>(shape.q_heads) ? 0 : 1]);
    to[0] = normed && has_first ? of_head[first] : uint4{0, 0, 0, 0};
    to[1] = normed && has_second ? of_head[second] : uint4{0, 0, 0, 0};
  }
};

template <int kLanes>
__global__ void __launch_bounds__(kMostThreads, 3)
    HeadNormRopeKernel(const uint4* x, HeadWeights weights, float eps, const int64_t* positions,
                       const __grid_constant__ RopeTurns turns, uint4* y, float* scale, HeadShape shape) {
  __shared__ PlaneTurns<kForwardRows> table;
  __shared__ SharedWeights of_heads;
  const NormedVectors<kLanes> own(shape, turns.rotary);
  const float share = 1 / static_cast<float>(shape.head_dim);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kForwardRows, left = shape.rows - first_row;
  const int rows = left < kForwardRows ? static_cast<int>(left) : kForwardRows;
  uint4 raw[kForwardRows][2];
#pragma unroll
  for (int r = 0; r < kForwardRows; ++r) own.Load(x, first_row + r, r < rows, raw[r]);
  of_heads.Fill(weights, shape);
  table.Fill(positions, turns, first_row, shape.rows);
  __syncthreads();
  uint4 raw_weights[2];
  own.ReadWeights(of_heads, shape, raw_weights);
#pragma unroll
  for (int r = 0; r < kForwardRows; ++r) {
    const int64_t row = first_row + r;
    if (r >= rows) break;
    float a[kVector], b[kVector], squares = 0;
    Widen(raw[r][0], a);
    Widen(raw[r][1], b);
#pragma unroll
    for (int i = 0; i < kVector; ++i) squares += a[i] * a[i] + b[i] * b[i];
    const float factor = rsqrtf(HeadSum<kLanes>(squares) * share + eps);
    if (own.normed) {
      float weight_a[kVector], weight_b[kVector];
      Widen(raw_weights[0], weight_a);
      Widen(raw_weights[1], weight_b);
#pragma unroll
      for (int i = 0; i < kVector; ++i) a[i] *= factor * weight_a[i], b[i] *= factor * weight_b[i];
      if (own.turns) table.Turn(r, own.first, a, b);
      raw[r][0] = Narrow(a), raw[r][1] = Narrow(b);
      if (own.lane == 0) scale[row * shape.turning() + own.head] = factor;
    }
    own.Store(raw[r], y, row);
  }
}

// The gradient turned back is that of the norm's result; from there on as HeadNormGradientKernel (head_norm.cu).
template <int kLanes>
__global__ void __launch_bounds__(kMostThreads, 2)
    RopeHeadNormGradientKernel(const uint4* dy, const int64_t* positions, const __grid_constant__ RopeTurns turns_back,
                               const uint4* x, const float* scale, HeadWeights weights, uint4* dx, float* partials,
                               HeadShape shape) {
  // One table is filled while slower threads still read the other.
  __shared__ PlaneTurns<kBackwardRows> tables[2];
  __shared__ SharedWeights of_heads;
  __shared__ float terms[kMostThreads * 2 * kVector];  // [heads of the block, head_dim]
  NormedVectors<kLanes> own(shape, turns_back.rotary);
  if (dy == dx && !own.normed) own.HaveNone();
  const float share = 1 / static_cast<float>(shape.head_dim);
  of_heads.Fill(weights, shape);
  __syncthreads();
  uint4 raw_weights[2];
  own.ReadWeights(of_heads, shape, raw_weights);
  float dweight_a[kVector] = {}, dweight_b[kVector] = {};
  const int64_t step = static_cast<int64_t>(gridDim.x) * kBackwardRows;
  int now = 0;
  for (int64_t first_row = static_cast<int64_t>(blockIdx.x) * kBackwardRows; first_row < shape.rows;
       first_row += step, now ^= 1) {
    uint4 raw_dy[kBackwardRows][2], raw_x[kBackwardRows][2];
    float factors[kBackwardRows];
#pragma unroll
    for (int r = 0; r < kBackwardRows; ++r) {
      const int64_t row = first_row + r;
      const bool exists = row < shape.rows;
      own.Load(dy, row, exists, raw_dy[r]);
      own.Load(x, row, exists && own.normed, raw_x[r]);
      factors[r] = exists && own.normed ? scale[row * shape.turning() + own.head] : 0;
    }
    tables[now].Fill(positions, turns_back, first_row, shape.rows);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kBackwardRows; ++r) {
      if (first_row + r >= shape.rows) break;
      float dy_a[kVector], dy_b[kVector], unit_a[kVector], unit_b[kVector], weight_a[kVector], weight_b[kVector],
          along = 0;
      Widen(raw_dy[r][0], dy_a);
      Widen(raw_dy[r][1], dy_b);
      if (own.turns) tables[now].Turn(r, own.first, dy_a, dy_b);
      Widen(raw_x[r][0], unit_a);
      Widen(raw_x[r][1], unit_b);
      Widen(raw_weights[0], weight_a);
      Widen(raw_weights[1], weight_b);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        unit_a[i] *= factors[r], unit_b[i] *= factors[r];
        const float term_a = dy_a[i] * unit_a[i], term_b = dy_b[i] * unit_b[i];
        dweight_a[i] += term_a, dweight_b[i] += term_b;
        along += term_a * weight_a[i] + term_b * weight_b[i];
      }
      along = HeadSum<kLanes>(along) * share;
      if (own.normed) {
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          dy_a[i] = (dy_a[i] * weight_a[i] - unit_a[i] * along) * factors[r];
          dy_b[i] = (dy_b[i] * weight_b[i] - unit_b[i] * along) * factors[r];
        }
        raw_dy[r][0] = Narrow(dy_a), raw_dy[r][1] = Narrow(dy_b);
      }
      own.Store(raw_dy[r], dx, first_row + r);
    }
  }
  if (partials == nullptr) return;

  const auto head_dim = static_cast<int>(shape.head_dim), heads = static_cast<int>(blockDim.x) / kLanes;
  float* const of_head = terms + (threadIdx.x / kLanes) * head_dim;
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    if (own.has_first) of_head[own.first * kVector + i] = dweight_a[i];
    if (own.has_second) of_head[own.second * kVector + i] = dweight_b[i];
  }
  __syncthreads();
  SumOverHeads(terms, heads, head_dim, static_cast<int>(blockIdx.y) * heads, shape, partials);
}

// Calls launch with the number of lanes of a head.
template <typename Launch>
void WithLanes(int64_t head_dim, Launch launch) {
  if (head_dim <= 4 * 2 * kVector) return launch(std::integral_constant<int, 4>());
  if (head_dim <= 8 * 2 * kVector) return launch(std::integral_constant<int, 8>());
  launch(std::integral_constant<int, 16>());
}
static_assert(kWidestHead == 16 * 2 * kVector);

// How the heads of a row are dealt to thread blocks.
struct HeadBlocks {
  int64_t parts = 1, threads = kMostThreads;

  explicit HeadBlocks(const HeadShape& shape) {
    WithLanes(shape.head_dim, [&](auto lanes_of_head) {
      constexpr int64_t kLanes = decltype(lanes_of_head)::value, kMostHeads = kMostThreads / kLanes;
      parts = (shape.heads() + kMostHeads - 1) / kMostHeads;
      const int64_t heads = (shape.heads() + parts - 1) / parts;
      threads = (heads * kLanes + kWarp - 1) / kWarp * kWarp;
    });
  }
};

// Thread blocks of the backward: of large ones as many as an H200 runs at a time, two on each of its 132
// multiprocessors, of small ones twice as many. ops.def counts the partial sums of the latter.
int64_t RowParts(const HeadShape& shape, const HeadBlocks& blocks) {
  const int64_t all = blocks.threads > kMostThreads / 2 ? 132 * 2 : 132 * 4, most = all / blocks.parts,
                needed = (shape.rows + kBackwardRows - 1) / kBackwardRows;
  return most < 1 ? 1 : most < needed ? most : needed;
}

}  // namespace

void LaunchHeadNormRope(const __nv_bfloat16* x, HeadWeights weights, float eps, const int64_t* positions,
                        const RopeTurns& turns, __nv_bfloat16* y, float* scale, const HeadShape& shape,
                        cudaStream_t stream) {
  if (shape.empty()) return;
  const HeadBlocks of_row(shape);
  const dim3 blocks(static_cast<unsigned>((shape.rows + kForwardRows - 1) / kForwardRows),
                    static_cast<unsigned>(of_row.parts));
  WithLanes(shape.head_dim, [&](auto lanes) {
    HeadNormRopeKernel<decltype(lanes)::value><<<blocks, static_cast<unsigned>(of_row.threads), 0, stream>>>(
        Vectors(x), weights, eps, positions, turns, Vectors(y), scale, shape);
  });
}

int64_t RopeHeadNormPartials(const HeadShape& shape) {
  if (shape.empty()) return 0;
  const HeadBlocks of_row(shape);
  return RowParts(shape, of_row) * of_row.parts;
}

void LaunchRopeHeadNormGradient(const __nv_bfloat16* dy, const int64_t* positions, const RopeTurns& turns_back,
                                const __nv_bfloat16* x, const float* scale, HeadWeights weights, __nv_bfloat16* dx,
                                float* partials, const HeadShape& shape, cudaStream_t stream) {
  if (shape.empty()) return;
  const HeadBlocks of_row(shape);
  const dim3 blocks(static_cast<unsigned>(RowParts(shape, of_row)), static_cast<unsigned>(of_row.parts));
  WithLanes(shape.head_dim, [&](auto lanes) {
    RopeHeadNormGradientKernel<decltype(lanes)::value><<<blocks, static_cast<unsigned>(of_row.threads), 0, stream>>>(
        Vectors(dy), positions, turns_back, Vectors(x), scale, weights, Vectors(dx), partials, shape);
  });
}

}  // namespace planwright::executor::ops
