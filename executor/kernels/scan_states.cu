// The states of the Mamba-2 scan at the chunks' starts, and their gradients at the chunks' ends (mamba_scan.h).
//
// Forward and backward do the same in opposite directions. First each chunk by itself: the sum over its positions of
// column times row, of x and B for what it adds to the state, of dy and C for the gradient of its start state. This sum
// is written to the index of the next chunk in that direction. Then the states pass from chunk to chunk, in place.
#include "executor/kernels/scan_block.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kRow = kScanState;                        // elements of a state's row
constexpr int64_t kMatrix = kScanHeadDim * kScanState;  // of a state

struct ChunkSums {
  const __nv_bfloat16* left;   // [positions, samples, left_width]: heads of 64 from the first column on
  const __nv_bfloat16* right;  // [positions, samples, right_width]: groups of 128 from column `right_column` on
  int64_t left_width, right_width, right_column;
  const float* factor;      // by position: of the left rows
  float* sums;              // [chunks, samples, heads, 64, 128]
  int64_t first_chunk, to;  // chunk k writes to index k + to
};

// sums = (factor left)^T right, for each head of a group. Warps divide a sum into four times 16 rows, and with eight
// warps into two halves of its columns.
template <int kChunk>
__global__ void __launch_bounds__(2 * kChunk, 3) ChunkSumsKernel(ScanShape z, ChunkSums p) {
  constexpr int kThreads = 2 * kChunk, kColumns = kRow / (kChunk / 64);
  extern __shared__ uint4 memory[];
  __nv_bfloat16* at = reinterpret_cast<__nv_bfloat16*>(memory);
  const StateTile right{at};
  at += StateTile::Elements(kChunk);
  const auto left = [&](int head) { return XTile{at + head % 2 * XTile::Elements(kChunk)}; };
  float* factors = reinterpret_cast<float*>(at + 2 * XTile::Elements(kChunk));

  const ScanBlock block(z, p.first_chunk);
  const auto begin_head = [&](int head) {
    BeginTile<kThreads, kChunk>(left(head), p.left + block.first_row * p.left_width + block.XColumn(head),
                                block.row_step * p.left_width, block.there);
    BeginFloats<kThreads, kChunk>(factors + head % 2 * kChunk, p.factor + (block.first_head + head) * kChunk);
  };
  BeginTile<kThreads, kChunk>(right,
                              p.right + block.first_row * p.right_width + p.right_column + block.group * kScanState,
                              block.row_step * p.right_width, block.there);
  begin_head(0);
  WaitForCopies();
  __syncthreads();

  const int row = WarpIndex() % 4 * 16, column = WarpIndex() / 4 * kColumns, lane = LaneIndex();
  for (int head = 0; head < block.heads; ++head) {
    if (head + 1 < block.heads) begin_head(head + 1);
    float sum[kColumns / 8][4] = {};
#pragma unroll
    for (int k = 0; k < kChunk; k += 16) {
      uint32_t a[4], b[4];
      LoadLeftTransposed(a, left(head), k, row);
      ScaleColumns(a, factors + head % 2 * kChunk + k);
#pragma unroll
      for (int n = 0; n < kColumns / 16; ++n) {
        LoadRight(b, right, k, column + n * 16);
        MultiplyAdd(sum[2 * n], sum[2 * n + 1], a, b);
      }
    }
    float* out = p.sums + (block.first_head + head + p.to * block.per_chunk) * kMatrix + (row + lane / 4) * kRow +
                 column + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      *reinterpret_cast<float2*>(out + n * 8) = make_float2(sum[n][0], sum[n][1]);
      *reinterpret_cast<float2*>(out + 8 * kRow + n * 8) = make_float2(sum[n][2], sum[n][3]);
    }
    WaitForCopies();
    __syncthreads();
  }
}

template <int kChunk>
void LaunchChunkSums(const ScanShape& z, const ChunkSums& p, cudaStream_t stream) {
  constexpr int kBytes = (StateTile::Elements(kChunk) + 2 * XTile::Elements(kChunk)) * 2 + 2 * kChunk * 4;
  LaunchWithMemory(ChunkSumsKernel<kChunk>, ScanBlocks(z, z.chunks - 1), 2 * kChunk, kBytes, stream, z, p);
}

void LaunchChunkSums(const ScanShape& z, const ChunkSums& p, cudaStream_t stream) {
  if (z.chunks == 1) return;  // no state passes
  if (z.chunk == 64) {
    LaunchChunkSums<64>(z, p, stream);
  } else {
    LaunchChunkSums<128>(z, p, stream);
  }
}

// --- passing from chunk to chunk. A warp has one row of one head's state, a lane four elements of it. Chunks are read
// some at a time, so that enough of memory's latency is hidden.

constexpr int kPassThreads = 256, kRowsEach = kPassThreads / 32;

// This warp's row among the rows of all heads and samples.
__device__ int64_t RowOfWarp() { return static_cast<int64_t>(blockIdx.x) * kRowsEach + WarpIndex(); }

unsigned PassBlocks(const ScanShape& z) {
  return static_cast<unsigned>((z.samples * z.heads * kScanHeadDim + kRowsEach - 1) / kRowsEach);
}

// exp(total) of a chunk: what it lets through of a head's start state.
__device__ float KeepOf(const ScanShape& z, const float* from_start, int64_t chunk, int64_t head) {
  return from_start[(chunk * z.samples * z.heads + head) * z.chunk + z.chunk - 1];
}

__device__ float4 ScaledPlus(float4 x, float factor, float4 y) {
  return make_float4(fmaf(x.x, factor, y.x), fmaf(x.y, factor, y.y), fmaf(x.z, factor, y.z), fmaf(x.w, factor, y.w));
}

__device__ uint2 PackedRow(float4 x) { return make_uint2(Packed(x.x, x.y), Packed(x.z, x.w)); }

__global__ void __launch_bounds__(kPassThreads, 4)
    PassStatesKernel(ScanShape z, const float* from_start, float* states, __nv_bfloat16* narrow) {
  constexpr int kAtOnce = 8;
  const int64_t rows = z.samples * z.heads * kScanHeadDim, row = RowOfWarp(), head = row / kScanHeadDim;
  if (row >= rows) return;
  const int64_t step = rows * kRow, own = row * kRow + LaneIndex() * 4;
  float4 state = make_float4(0, 0, 0, 0);
  const auto write = [&](int64_t chunk) {
    *reinterpret_cast<float4*>(states + chunk * step + own) = state;
    *reinterpret_cast<uint2*>(narrow + chunk * step + own) = PackedRow(state);
  };
  write(0);
  for (int64_t first = 1; first < z.chunks; first += kAtOnce) {
    float4 added[kAtOnce];
    float keep[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t chunk = first + u;
      if (chunk >= z.chunks) break;
      added[u] = *reinterpret_cast<const float4*>(states + chunk * step + own);
      keep[u] = KeepOf(z, from_start, chunk - 1, head);
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      if (first + u >= z.chunks) break;
      state = ScaledPlus(state, keep[u], added[u]);
      write(first + u);
    }
  }
}

// From the last chunk to the first. `passed` is ScanGradients::states: index k of it holds the gradient of the start
// state of chunk k + 1 through that chunk's outputs, fp32 rows of 128, and gets two bf16 rows of 128 instead of each.
// All reads of a row come before the writes to it, because one warp does both.
__global__ void __launch_bounds__(kPassThreads, 4)
    PassGradientsKernel(ScanShape z, const float* from_start, const float* states, float* passed, float* kept) {
  constexpr int kAtOnce = 4;
  const int64_t rows = z.samples * z.heads * kScanHeadDim, row = RowOfWarp(), head = row / kScanHeadDim;
  if (row >= rows) return;
  const int64_t step = rows * kRow, own = row * kRow + LaneIndex() * 4;
  float4 gradient = make_float4(0, 0, 0, 0);  // of the state at the chunk's end
  for (int64_t last = z.chunks - 1; last >= 0; last -= kAtOnce) {
    float4 state[kAtOnce], start[kAtOnce];
    float keep[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t chunk = last - u;
      if (chunk < 0) break;
      state[u] = *reinterpret_cast<const float4*>(states + chunk * step + own);
      if (chunk > 0) start[u] = *reinterpret_cast<const float4*>(passed + (chunk - 1) * step + own);
      keep[u] = KeepOf(z, from_start, chunk, head);
    }
    __syncwarp();
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int64_t chunk = last - u;
      if (chunk < 0) break;
      const float4 s = state[u];
      const float sum = WarpSum(gradient.x * s.x + gradient.y * s.y + gradient.z * s.z + gradient.w * s.w);
      if (LaneIndex() == 0) kept[chunk * rows + row] = keep[u] * sum;
      __nv_bfloat16* to = reinterpret_cast<__nv_bfloat16*>(passed + chunk * step + row * kRow) + LaneIndex() * 4;
      *reinterpret_cast<uint2*>(to) = PackedRow(gradient);
      *reinterpret_cast<uint2*>(to + kRow) = PackedRow(s);
      if (chunk > 0) gradient = ScaledPlus(gradient, keep[u], start[u]);
    }
  }
}

}  // namespace

void LaunchScanStates(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors, float* states,
                      __nv_bfloat16* narrow, cudaStream_t stream) {
  const int64_t inner = static_cast<int64_t>(z.heads) * kScanHeadDim,
                width = inner + 2 * static_cast<int64_t>(z.groups) * kScanState;
  LaunchChunkSums(z, {inputs.xbc, inputs.xbc, width, width, inner, factors.added, states, 0, 1}, stream);
  PassStatesKernel<<<PassBlocks(z), kPassThreads, 0, stream>>>(z, factors.from_start, states, narrow);
}

void LaunchScanStateGradients(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors,
                              const __nv_bfloat16* dy, const float* states, const ScanGradients& gradients,
                              cudaStream_t stream) {
  const int64_t inner = static_cast<int64_t>(z.heads) * kScanHeadDim, bc = static_cast<int64_t>(z.groups) * kScanState;
  float* passed = reinterpret_cast<float*>(gradients.states);
  LaunchChunkSums(z, {dy, inputs.xbc, inner, inner + 2 * bc, inner + bc, factors.from_start, passed, 1, -1}, stream);
  PassGradientsKernel<<<PassBlocks(z), kPassThreads, 0, stream>>>(z, factors.from_start, states, passed,
                                                                  gradients.kept);
}

}  // namespace planwright::executor::ops
