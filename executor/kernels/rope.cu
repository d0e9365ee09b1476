// The rotary embedding (head_rows.h). A thread block has a few rows. It computes the cosines and sines of their
// positions once for all heads, while the first vectors are under way. A thread has two vectors of a head: of those
// that turn, both halves of 8 planes.
#include "executor/kernels/head_rows.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kMostThreads = 256, kRows = 4;
constexpr int kMostPlanes = static_cast<int>(kWidestHead) / 2;

// This thread's two vectors of a head. One of them may not exist.
struct TwoVectors {
  int64_t row_vectors;
  int first, second;  // within the head
  int64_t head_at;
  bool has_first, has_second, turns;

  __device__ __forceinline__ TwoVectors(const HeadShape& shape, int64_t rotary) {
    const auto vectors = static_cast<int>(shape.head_dim / kVector), half = static_cast<int>(rotary) / (2 * kVector),
               pairs = (vectors + 1) / 2, pair = static_cast<int>(threadIdx.x) % pairs;
    const int64_t head = static_cast<int64_t>(blockIdx.y) * (blockDim.x / pairs) + threadIdx.x / pairs;
    // Behind the vectors that turn, neighbours are a pair.
    first = pair < half ? pair : 2 * pair, second = pair < half ? pair + half : 2 * pair + 1;
    const bool exists = head < shape.heads();
    has_first = exists && first < vectors, has_second = exists && second < vectors;
    turns = pair < half && head < shape.turning();
    row_vectors = shape.heads() * vectors, head_at = head * vectors;
  }
};

__global__ void __launch_bounds__(kMostThreads)
    RopeKernel(const uint4* x, const int64_t* positions, const __grid_constant__ RopeTurns turns, uint4* y,
               HeadShape shape) {
  __shared__ __align__(16) float cosines[kRows][kMostPlanes], sines[kRows][kMostPlanes];
  const TwoVectors own(shape, turns.rotary);
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kRows;
  uint4 raw[kRows][2];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const uint4* head = x + (first_row + r) * own.row_vectors + own.head_at;
    const bool exists = first_row + r < shape.rows;
    raw[r][0] = exists && own.has_first ? head[own.first] : uint4{0, 0, 0, 0};
    raw[r][1] = exists && own.has_second ? head[own.second] : uint4{0, 0, 0, 0};
  }
  const auto planes = static_cast<int>(turns.rotary) / 2;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * planes; i += static_cast<int>(blockDim.x)) {
    const int r = i / planes, plane = i % planes;
    if (first_row + r >= shape.rows) break;
    // Whole turns go away in fp64; what is left, at most half a turn, is small enough for fp32.
    const int64_t position = positions[turns.axis_of_plane[plane] * shape.rows + first_row + r];
    const double all = static_cast<double>(position) * turns.of_plane[plane];
    float sine, cosine;
    sincospif(static_cast<float>(2 * (all - rint(all))), &sine, &cosine);
    cosines[r][plane] = cosine * turns.amplitude, sines[r][plane] = sine * turns.amplitude;
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first_row + r >= shape.rows) break;
    if (own.turns) {
      float a[kVector], b[kVector], cosine[kVector], sine[kVector];
      Widen(raw[r][0], a);
      Widen(raw[r][1], b);
#pragma unroll
      for (int i = 0; i < kVector; i += 4) {
        *reinterpret_cast<float4*>(cosine + i) = *reinterpret_cast<const float4*>(&cosines[r][own.first * kVector + i]);
        *reinterpret_cast<float4*>(sine + i) = *reinterpret_cast<const float4*>(&sines[r][own.first * kVector + i]);
      }
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float before = a[i];
        a[i] = before * cosine[i] - b[i] * sine[i];
        b[i] = b[i] * cosine[i] + before * sine[i];
      }
      raw[r][0] = Narrow(a), raw[r][1] = Narrow(b);
    }
    uint4* head = y + (first_row + r) * own.row_vectors + own.head_at;
    if (own.has_first) head[own.first] = raw[r][0];
    if (own.has_second) head[own.second] = raw[r][1];
  }
}

}  // namespace

void LaunchRope(const __nv_bfloat16* x, const int64_t* positions, const RopeTurns& turns, __nv_bfloat16* y,
                const HeadShape& shape, cudaStream_t stream) {
  if (shape.rows == 0 || shape.heads() == 0 || shape.head_dim == 0) return;
  const int64_t pairs = (shape.head_dim / kVector + 1) / 2, fit = kMostThreads / pairs,
                heads = fit < shape.heads() ? fit : shape.heads();
  const dim3 blocks(static_cast<unsigned>((shape.rows + kRows - 1) / kRows),
                    static_cast<unsigned>((shape.heads() + heads - 1) / heads));
  RopeKernel<<<blocks, static_cast<unsigned>(heads * pairs), 0, stream>>>(reinterpret_cast<const uint4*>(x), positions,
                                                                          turns, reinterpret_cast<uint4*>(y), shape);
}

}  // namespace planwright::executor::ops
