// What the kernels of mamba_scan.h share: which chunk, sample and group a thread block works on, and where its data
// lies.
#pragma once

#include "executor/kernels/mamba_scan.h"
#include "executor/kernels/warp_tile.cuh"

namespace planwright::executor::ops {

using XTile = Tile<kScanHeadDim>;    // rows of x, dy or y of one head
using StateTile = Tile<kScanState>;  // rows of B, C, or of a state

// One thread block for each chunk, sample and group; the heads of a group share B and C. A warp has 16 of the chunk's
// positions.
struct ScanBlock {
  int64_t chunk, sample;
  int group, heads;    // heads of a group
  int there;           // positions of the chunk before the sequence's end, at least 1
  int64_t first_row;   // of the tensors by [positions, samples]
  int64_t row_step;    // rows from a position to the next
  int64_t inner, bc;   // widths of x and of B
  int64_t per_chunk;   // heads of all samples
  int64_t first_head;  // of this chunk, sample and group, among all chunks' heads

  __device__ ScanBlock(const ScanShape& z, int64_t first_chunk) {
    const int64_t block = blockIdx.x;
    group = static_cast<int>(block % z.groups);
    sample = block / z.groups % z.samples;
    chunk = first_chunk + block / (z.groups * z.samples);
    heads = z.heads / z.groups;
    const int64_t left = z.positions - chunk * z.chunk;
    there = left < z.chunk ? static_cast<int>(left) : z.chunk;
    first_row = chunk * z.chunk * z.samples + sample;
    row_step = z.samples;
    inner = static_cast<int64_t>(z.heads) * kScanHeadDim;
    bc = static_cast<int64_t>(z.groups) * kScanState;
    per_chunk = z.samples * z.heads;
    first_head = chunk * per_chunk + sample * z.heads + group * heads;
  }

  __device__ int64_t Head(int head) const { return static_cast<int64_t>(group) * heads + head; }  // of the layer
  __device__ int64_t xbc_width() const { return inner + 2 * bc; }
  // Column of xbc
  __device__ int64_t XColumn(int head) const { return Head(head) * kScanHeadDim; }
  __device__ int64_t BColumn() const { return inner + group * kScanState; }
  __device__ int64_t CColumn() const { return inner + bc + group * kScanState; }
};

__device__ inline float Wide(__nv_bfloat16 x) { return __bfloat162float(x); }

// Writes two neighbours of a row.
__device__ inline void WritePair(__nv_bfloat16* to, float first, float second) {
  *reinterpret_cast<uint32_t*>(to) = Packed(first, second);
}

// Which strip of 16 positions a warp has. A position sees those before it, so the work of a warp grows or falls with
// its strip. A scheduler of the GPU serves every fourth warp, and gets equal work: strips 0 and 7, 1 and 6, ...
template <int kWarps>
__device__ int StripOfWarp() {
  const int warp = WarpIndex();
  return kWarps == 8 && warp >= 4 ? 11 - warp : warp;
}

inline unsigned ScanBlocks(const ScanShape& z, int64_t chunks) {
  return static_cast<unsigned>(chunks * z.samples * z.groups);
}

// Launches a kernel that takes more shared memory than the default limit. A refusal shows as an error of the launch.
template <typename... Parameters, typename... Arguments>
void LaunchWithMemory(void (*kernel)(Parameters...), unsigned blocks, int threads, int bytes, cudaStream_t stream,
                      Arguments... arguments) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<blocks, threads, bytes, stream>>>(arguments...);
}

}  // namespace planwright::executor::ops
