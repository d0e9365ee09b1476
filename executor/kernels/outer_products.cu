// The simple form of outer products of runs (executor/kernels/outer_products.h): tensor cores as Ampere has them.
//
// A block sums a tile of 128 x 128 elements of one run's matrix. 32 rows of a and b at a time go through shared memory,
// four such stages are in flight. Each of eight warps has 64 x 32 elements in registers.
#include <cuda_runtime.h>

#include "executor/kernels/outer_products.h"

namespace planwright::executor::ops {
namespace {

constexpr int kTile = 128, kDepth = 32, kStages = 4;
constexpr int kWarpInner = 64, kWarpWidth = 32, kWarpsAcross = kTile / kWarpWidth;
constexpr int kThreads = kTile / kWarpInner * kWarpsAcross * 32;

// Sizes of one instruction.
constexpr int kProductInner = 16, kProductWidth = 8, kProductDepth = 16;
constexpr int kProductsInner = kWarpInner / kProductInner, kProductsWidth = kWarpWidth / kProductWidth;

constexpr int kChunk = 8;  // elements of 16 bytes, which move together
constexpr int kRowChunks = kTile / kChunk;
constexpr int kSharedBytes = kStages * 2 * kTile * kDepth * static_cast<int>(sizeof(__nv_bfloat16));

using Chunk = uint4;

// 32 rows of 128 elements. The 8 chunks that one instruction reads lie below each other: they are shifted row by row,
// so that no two are in the same banks.
struct Rows {
  Chunk chunks[kDepth][kRowChunks];

  __device__ uint32_t Address(int row, int chunk) const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(&chunks[row][chunk ^ (row & 7)]));
  }
};

struct Stage {
  Rows a, b;
};
static_assert(sizeof(Stage) * kStages == kSharedBytes);

// Copies 16 bytes later. If there are none, `from` is not read and `to` becomes 0.
__device__ void CopyChunk(uint32_t to, const __nv_bfloat16* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

// Rows from `first` on, those before `end`; columns from `column` on, those before `width`.
__device__ void CopyRows(const Rows& to, const __nv_bfloat16* from, int64_t first, int64_t end, int64_t column,
                         int64_t width) {
  for (int i = static_cast<int>(threadIdx.x); i < kDepth * kRowChunks; i += kThreads) {
    const int row = i / kRowChunks, chunk = i % kRowChunks;
    const int64_t at = column + chunk * kChunk;
    const bool there = first + row < end && at < width;
    CopyChunk(to.Address(row, chunk), there ? from + (first + row) * width + at : from, there);
  }
}

// Four matrices of 8 x 8 elements, transposed. Lanes 0 to 7 have the addresses of the rows of the first, and so on.
__device__ void LoadTransposed(uint32_t (&to)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

__device__ void AddProduct(float (&sum)[4], const uint32_t (&a)[4], uint32_t b_first, uint32_t b_second) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_first), "r"(b_second));
}

using Sums = float[kProductsInner][kProductsWidth][4];

// Adds the products of a stage to this warp's sums.
__device__ void AddProducts(Sums& sums, const Stage& stage, int warp_inner, int warp_width) {
  const int lane = static_cast<int>(threadIdx.x) % 32, within = lane % 8, matrix = lane / 8;
#pragma unroll
  for (int depth = 0; depth < kDepth; depth += kProductDepth) {
    // a: the matrices of an instruction follow each other along inner, then along rows. b: along rows, then width.
    uint32_t a[kProductsInner][4], b[kProductsWidth / 2][4];
#pragma unroll
    for (int i = 0; i < kProductsInner; ++i) {
      const int row = depth + matrix / 2 * 8 + within, column = warp_inner + i * kProductInner + matrix % 2 * 8;
      LoadTransposed(a[i], stage.a.Address(row, column / kChunk));
    }
#pragma unroll
    for (int j = 0; j < kProductsWidth / 2; ++j) {
      const int row = depth + matrix % 2 * 8 + within, column = warp_width + (2 * j + matrix / 2) * kProductWidth;
      LoadTransposed(b[j], stage.b.Address(row, column / kChunk));
    }
#pragma unroll
    for (int i = 0; i < kProductsInner; ++i) {
#pragma unroll
      for (int j = 0; j < kProductsWidth; ++j)
        AddProduct(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
}

// kPairs: rows of the matrix are on 8 bytes, so two neighbours are read and written at once.
template <bool kPairs>
__device__ void AddToMemory(float* to, float first, float second) {
  if constexpr (kPairs) {
    float2 old = *reinterpret_cast<float2*>(to);
    old.x += first, old.y += second;
    *reinterpret_cast<float2*>(to) = old;
  } else {
    to[0] += first, to[1] += second;
  }
}

template <bool kPairs>
__global__ void __launch_bounds__(kThreads, 2) OuterProductsSimpleKernel(const OuterProducts task) {
  const int64_t run = blockIdx.z, begin = run == 0 ? 0 : task.ends[run - 1], end = task.ends[run];
  if (begin >= end) return;
  const int64_t inner0 = static_cast<int64_t>(blockIdx.y) * kTile, width0 = static_cast<int64_t>(blockIdx.x) * kTile;
  extern __shared__ __align__(16) unsigned char memory[];
  Stage* stages = reinterpret_cast<Stage*>(memory);
  const auto copy = [&](int64_t block) {
    const int64_t first = begin + block * kDepth;
    if (first < end) {
      CopyRows(stages[block % kStages].a, task.a, first, end, inner0, task.inner);
      CopyRows(stages[block % kStages].b, task.b, first, end, width0, task.width);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");  // also if empty, so that groups count blocks
  };

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_inner = warp / kWarpsAcross * kWarpInner, warp_width = warp % kWarpsAcross * kWarpWidth;
  Sums sums = {};
  for (int block = 0; block < kStages - 1; ++block) copy(block);
  for (int64_t block = 0; begin + block * kDepth < end; ++block) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();  // this block has come, and all warps are done with the one before
    copy(block + kStages - 1);
    AddProducts(sums, stages[block % kStages], warp_inner, warp_width);
  }

  float* matrix = task.sums + run * task.inner * task.width;
#pragma unroll
  for (int i = 0; i < kProductsInner; ++i) {
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const int64_t row = inner0 + warp_inner + i * kProductInner + lower * 8 + lane / 4;
      if (row >= task.inner) continue;
#pragma unroll
      for (int j = 0; j < kProductsWidth; ++j) {
        const int64_t column = width0 + warp_width + j * kProductWidth + lane % 4 * 2;
        if (column < task.width)
          AddToMemory<kPairs>(matrix + row * task.width + column, sums[i][j][2 * lower], sums[i][j][2 * lower + 1]);
      }
    }
  }
}

bool On(int64_t bytes, const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

int ComputeCapability() {
  int device = 0, major = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess)
    return 0;
  return major;
}

}  // namespace

bool SimpleFormTakes(const OuterProducts& task) {
  constexpr int64_t kMostBlocks = 65535;
  return !task.writes && task.parts == 1 && task.runs > 0 && task.runs <= kMostBlocks && task.rows > 0 &&
         task.inner > 0 && task.inner % kChunk == 0 && task.inner <= kMostBlocks * kTile && task.width > 0 &&
         task.width % kChunk == 0 && On(16, task.a) && On(16, task.b) && ComputeCapability() >= 8;
}

cudaError_t LaunchAddOuterProductsOfRunsSimple(const OuterProducts& task, cudaStream_t stream) {
  const auto kernel =
      On(sizeof(float2), task.sums) ? OuterProductsSimpleKernel<true> : OuterProductsSimpleKernel<false>;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;
  const auto tiles = [](int64_t size) { return static_cast<unsigned>((size + kTile - 1) / kTile); };
  kernel<<<dim3(tiles(task.width), tiles(task.inner), static_cast<unsigned>(task.runs)), kThreads, kSharedBytes,
           stream>>>(task);
  return cudaSuccess;
}

}  // namespace planwright::executor::ops
