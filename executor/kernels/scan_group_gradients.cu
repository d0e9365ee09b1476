// The gradient of the Mamba-2 scan, part two: B and C, which the heads of a group share (mamba_scan.h).
//
//   dC_i = sum over heads of state^T (exp(decay_i) dy_i)       + sum over j of G_ij B_j
//   dB_j = sum over heads of dend^T (exp(total - decay_j) u_j) + sum over i of G_ij C_i
#include "executor/kernels/scan_block.cuh"

namespace planwright::executor::ops {
namespace {

// Shared memory: of two heads in turn dy or x, the state or its gradient, and a factor; behind the last head G and B or
// C instead. For dC there is C besides.
template <int kChunk, bool kOfC>
struct GroupMemory {
  static constexpr int kHead = XTile::Elements(kChunk) + StateTile::Elements(kScanHeadDim);
  static constexpr int kBytes = (2 * kHead + (kOfC ? StateTile::Elements(kChunk) : 0)) * 2 + 2 * kChunk * 4;
  static_assert(Tile<kChunk>::Elements(kChunk) <= kHead && StateTile::Elements(kChunk) <= kHead);

  __nv_bfloat16* elements;
  __device__ XTile Left(int head) const { return {elements + head % 2 * kHead}; }
  __device__ StateTile State(int head) const { return {Left(head).data + XTile::Elements(kChunk)}; }
  __device__ Tile<kChunk> Pairs() const { return {elements}; }
  __device__ StateTile Right() const { return {elements + kHead}; }
  __device__ StateTile C() const { return {elements + 2 * kHead}; }
  __device__ float* Factors(int head) const {
    return reinterpret_cast<float*>(elements + 2 * kHead + (kOfC ? StateTile::Elements(kChunk) : 0)) +
           head % 2 * kChunk;
  }
};

// A warp has 16 positions of the chunk, and their gradients in registers. dC is computed 32 columns at a time for each
// head by itself, because its product with C is the gradient of the decay from the chunk's start:
// read . (state C_i) = C_i . (state^T read).
template <int kChunk, bool kOfC>
__global__ void __launch_bounds__(2 * kChunk, 2)
    GroupGradientsKernel(ScanShape z, ScanInputs in, ScanFactors f, const __nv_bfloat16* dy, ScanGradients out) {
  constexpr int kThreads = 2 * kChunk, kStrips = kChunk / 16;
  extern __shared__ uint4 memory[];
  const GroupMemory<kChunk, kOfC> shared{reinterpret_cast<__nv_bfloat16*>(memory)};
  const ScanBlock block(z, 0);
  const int64_t width = block.xbc_width(), left_width = kOfC ? block.inner : width;
  const __nv_bfloat16 *rows = in.xbc + block.first_row * width,
                      *left_rows = (kOfC ? dy : in.xbc) + block.first_row * left_width;
  const auto begin_head = [&](int head) {
    const int64_t of = block.first_head + head;
    BeginTile<kThreads, kChunk>(shared.Left(head), left_rows + block.XColumn(head), block.row_step * left_width,
                                block.there);
    BeginTile<kThreads, kScanHeadDim>(shared.State(head),
                                      out.states + of * kScanHeadDim * 2 * kScanState + (kOfC ? kScanState : 0),
                                      2 * kScanState, kScanHeadDim);
    BeginFloats<kThreads, kChunk>(shared.Factors(head), (kOfC ? f.from_start : f.added) + of * kChunk);
  };
  if (kOfC) BeginTile<kThreads, kChunk>(shared.C(), rows + block.CColumn(), block.row_step * width, block.there);
  begin_head(0);
  WaitForCopies();
  __syncthreads();

  const int first = WarpIndex() % kStrips * 16, lane = LaneIndex(), pair = lane % 4 * 2;
  const int row0 = first + lane / 4, row1 = row0 + 8;  // the positions of this lane
  float sum[kScanState / 8][4] = {};
  uint32_t b[4];
  for (int head = 0; head < block.heads; ++head) {
    if (head + 1 < block.heads) begin_head(head + 1);
    uint32_t left[kScanHeadDim / 16][4];
    const float factor0 = shared.Factors(head)[row0], factor1 = shared.Factors(head)[row1];
#pragma unroll
    for (int p = 0; p < kScanHeadDim / 16; ++p) {
      LoadLeft(left[p], shared.Left(head), first, p * 16);
      ScaleRows(left[p], factor0, factor1);
    }
    float read0 = 0, read1 = 0;
#pragma unroll
    for (int n = 0; n < kScanState / 8; n += 4) {
      float own[4][4] = {};
#pragma unroll
      for (int p = 0; p < kScanHeadDim / 16; ++p) {
#pragma unroll
        for (int half = 0; half < 4; half += 2) {
          LoadRight(b, shared.State(head), p * 16, (n + half) * 8);
          MultiplyAdd(own[half], own[half + 1], left[p], b);
        }
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[n + u][e] += own[u][e];
        if (kOfC) {
          const float2 c0 = shared.C().Pair(row0, (n + u) * 8 + pair), c1 = shared.C().Pair(row1, (n + u) * 8 + pair);
          read0 += own[u][0] * c0.x + own[u][1] * c0.y;
          read1 += own[u][2] * c1.x + own[u][3] * c1.y;
        }
      }
    }
    if (kOfC) {
      read0 = RowSum(read0), read1 = RowSum(read1);
      float* to = out.read + (block.first_head + head) * kChunk;
      if (lane % 4 == 0) to[row0] = read0, to[row1] = read1;
    }
    WaitForCopies();
    __syncthreads();
  }

  BeginTile<kThreads, kChunk>(shared.Pairs(), out.pairs + static_cast<int64_t>(blockIdx.x) * kChunk * kChunk, kChunk,
                              kChunk);
  BeginTile<kThreads, kChunk>(shared.Right(), rows + (kOfC ? block.BColumn() : block.CColumn()), block.row_step * width,
                              block.there);
  WaitForCopies();
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kChunk; k += 16) {
    uint32_t a[4];
    if (kOfC) {
      LoadLeftTransposed(a, shared.Pairs(), k, first);
    } else {
      LoadLeft(a, shared.Pairs(), first, k);
    }
#pragma unroll
    for (int n = 0; n < kScanState / 16; ++n) {
      LoadRight(b, shared.Right(), k, n * 16);
      MultiplyAdd(sum[2 * n], sum[2 * n + 1], a, b);
    }
  }
  __nv_bfloat16* to =
      out.dxbc + (block.first_row + row0 * block.row_step) * width + (kOfC ? block.CColumn() : block.BColumn()) + pair;
#pragma unroll
  for (int n = 0; n < kScanState / 8; ++n) {
    if (row0 < block.there) WritePair(to + n * 8, sum[n][0], sum[n][1]);
    if (row1 < block.there) WritePair(to + 8 * block.row_step * width + n * 8, sum[n][2], sum[n][3]);
  }
}

template <int kChunk, bool kOfC>
void LaunchGroupGradients(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors,
                          const __nv_bfloat16* dy, const ScanGradients& gradients, cudaStream_t stream) {
  LaunchWithMemory(GroupGradientsKernel<kChunk, kOfC>, ScanBlocks(z, z.chunks), 2 * kChunk,
                   GroupMemory<kChunk, kOfC>::kBytes, stream, z, inputs, factors, dy, gradients);
}

}  // namespace

void LaunchScanGroupGradients(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors,
                              const __nv_bfloat16* dy, const ScanGradients& gradients, cudaStream_t stream) {
  if (z.chunk == 64) {
    LaunchGroupGradients<64, true>(z, inputs, factors, dy, gradients, stream);
    LaunchGroupGradients<64, false>(z, inputs, factors, dy, gradients, stream);
  } else {
    LaunchGroupGradients<128, true>(z, inputs, factors, dy, gradients, stream);
    LaunchGroupGradients<128, false>(z, inputs, factors, dy, gradients, stream);
  }
}

}  // namespace planwright::executor::ops
