// The rotary embedding (head_rows.h). A thread block has a few rows. It computes the cosines and sines of their
// positions once for all heads, while the first vectors are under way. A thread has two vectors of a head: of those
// that turn, both halves of 8 planes.
#include "executor/kernels/head_rows.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kMostThreads = 256, kRows = 4;

__global__ void __launch_bounds__(kMostThreads)
    RopeKernel(const uint4* x, const int64_t* positions, const __grid_constant__ RopeTurns turns, uint4* y,
               HeadShape shape) {
  __shared__ PlaneTurns<kRows> table;
  const auto pairs = static_cast<int>((shape.head_dim / kVector + 1) / 2), thread = static_cast<int>(threadIdx.x),
             heads = static_cast<int>(blockDim.x) / pairs;
  TwoVectors own(shape, turns.rotary, static_cast<int>(blockIdx.y) * heads + thread / pairs, thread % pairs);
  if (x == y && !own.turns) own.HaveNone();
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kRows;
  uint4 raw[kRows][2];
#pragma unroll
  for (int r = 0; r < kRows; ++r) own.Load(x, first_row + r, first_row + r < shape.rows, raw[r]);
  table.Fill(positions, turns, first_row, shape.rows);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (first_row + r >= shape.rows) break;
    if (own.turns) {
      float a[kVector], b[kVector];
      Widen(raw[r][0], a);
      Widen(raw[r][1], b);
      table.Turn(r, own.first, a, b);
      raw[r][0] = Narrow(a), raw[r][1] = Narrow(b);
    }
    own.Store(raw[r], y, first_row + r);
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
