// The instructions that only Hopper has, as the PTX manual defines them, and what they need from the host: barriers in
// shared memory, loads of boxes, products of a warpgroup, bulk copies. For files that are compiled for sm_90a alone.
//
// The kernels that use them have thread blocks of three warpgroups, one that loads and two that multiply, in clusters
// of two blocks. Boxes go through a ring of stages from the first to the others.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace planwright::executor::ops {

// A box is what one load brings: rows of 64 elements. 64 elements are the 128 bytes over which swizzling goes. A square
// one has 64 rows.
constexpr int kBox = 64, kBoxBytes = kBox * kBox * static_cast<int>(sizeof(__nv_bfloat16));
constexpr int kCluster = 2, kWarpgroup = 128, kMultiplyingWarps = 2 * kWarpgroup / 32, kThreads = 3 * kWarpgroup;
// A thread has so many. The loading warpgroup once and the other twice make 504, what three warpgroups begin with.
constexpr int kMultiplyingRegisters = 232, kLoadingRegisters = 40;

// A warpgroup that multiplies has a tile of 128 x 192 elements.
constexpr int kTileHalves = 2, kTileRows = kTileHalves * kBox, kTileColumns = 3 * kBox;
// The summed index of one instruction, which has 64 rows of the tile; sums that a thread has of each half.
constexpr int kProductDepth = 16, kEach = kBox * kTileColumns / kWarpgroup;

constexpr int kStages = 4, kStageBytes = (kTileRows + kTileColumns) * kBox * static_cast<int>(sizeof(__nv_bfloat16));

// ---- Barriers in shared memory ----

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void Prepare(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(arrivals) : "memory");
}

// After Prepare and before WaitForCluster.
__device__ inline void ShowPrepared() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Waits until the phase of this parity is over. Right only if the phase before it is over.
__device__ inline void WaitFor(uint64_t* barrier, uint32_t parity) {
  uint32_t over = 0;
  while (over == 0) {
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n"
        "}\n"
        : "=r"(over)
        : "r"(SharedAddress(barrier)), "r"(parity)
        : "memory");
  }
}

__device__ inline void ArriveExpecting(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(bytes)
               : "memory");
}

// Arrives at the same barrier of one block of the cluster. Release at the scope of this block is enough: the other
// block reads nothing that this thread wrote.
__device__ inline void ArriveIn(int block, uint64_t* barrier) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(SharedAddress(barrier)),
      "r"(block)
      : "memory");
}

__device__ inline void WaitForCluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
}

// Named barriers, which do not count phases. 0 is that of __syncthreads.
enum NamedBarrier { kTurnOfFirst = 1, kTurnOfSecond = 2, kWithinFirst = 3, kWithinSecond = 4 };

__device__ inline void WaitAtNamed(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ inline void ArriveAtNamed(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// ---- The ring of stages ----

struct Ring {
  alignas(1024) unsigned char stages[kStages][kStageBytes];
  uint64_t full[kStages], empty[kStages];  // barriers

  // By one thread.
  __device__ void PrepareBarriers() {
    for (int i = 0; i < kStages; ++i) {
      Prepare(&full[i], 1);                            // the thread that loads
      Prepare(&empty[i], kCluster * kWarpgroup / 32);  // warps of the warpgroup that multiplies, in each block
    }
  }

  // Tells both blocks of the cluster that this warp has read a stage.
  __device__ void Release(int stage) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < kCluster) ArriveIn(lane, &empty[stage]);
  }
};

// Which stage the next boxes go through, and how often the stage was used before, as the parity of that number.
struct Turn {
  __device__ explicit Turn(uint32_t block) : stage(static_cast<int>(block % kStages)), parity(block / kStages & 1) {}
  __device__ void Advance() {
    if (++stage < kStages) return;
    stage = 0, parity ^= 1;
  }

  int stage;
  uint32_t parity;
};

// ---- Loads ----

__device__ inline void LoadBox(unsigned char* to, const CUtensorMap& map, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          SharedAddress(to)),
      "l"(&map), "r"(column), "r"(row), "r"(SharedAddress(barrier))
      : "memory");
}

// To the same offset in both blocks. Each gets a signal at its own barrier.
__device__ inline void LoadBoxForBoth(unsigned char* to, const CUtensorMap& map, int column, int row,
                                      uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(SharedAddress(to)),
      "l"(&map), "r"(column), "r"(row), "r"(SharedAddress(barrier)), "h"(static_cast<uint16_t>((1 << kCluster) - 1))
      : "memory");
}

// ---- Products ----

// How a factor lies in boxes: with its own index along the 64 elements of a row, or with the summed one.
enum class Along { kOwn, kSummed };

// Describes boxes to the tensor cores, from the step-th 16 of the summed index on. Fields, in units of 16 bytes: the
// address; from bit 16 the distance from 64 columns to the next 64 (a square box; nothing needs it if the summed index
// goes along rows, because a stage has 64 of it); from bit 32 the distance from 8 rows to the next 8 (8 times 128
// bytes). 1 in the two highest bits: swizzled over 128 bytes.
template <Along along>
__device__ uint64_t Described(const unsigned char* boxes, int step) {
  constexpr uint64_t kPattern = 8 * 128;
  constexpr int kStep = along == Along::kOwn ? kProductDepth * 128 : kProductDepth * 2;
  return (uint64_t{1} << 62 | (kPattern >> 4) << 32 | uint64_t{kBoxBytes >> 4} << 16 |
          (SharedAddress(boxes) & 0x3FFFF) >> 4) +
         static_cast<uint64_t>(step) * (kStep >> 4);
}

__device__ inline void BeginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void CommitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `behind` committed groups are unfinished.
template <int behind>
__device__ void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(behind) : "memory");
}

#define EIGHT_SUMS(i)                                                                                     \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
      "+f"(sum[i + 6]), "+f"(sum[i + 7])

// sum += products of 16 of the summed index: 64 rows from a, 192 columns from b. Thread t of the warpgroup has, for
// i < 24 and j < 2, the elements (16 (t / 32) + (t % 32) / 4 + 8 j, 8 i + 2 (t % 4)) and its right neighbour in
// sum[4 i + 2 j] and the next.
template <Along along_a, Along along_b>
__device__ void AddProduct(float (&sum)[kEach], uint64_t a, uint64_t b) {
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.eq.u32 adds, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, "
      "%96, %97, adds, 1, 1, %98, %99;\n"
      "}\n"
      : EIGHT_SUMS(0), EIGHT_SUMS(8), EIGHT_SUMS(16), EIGHT_SUMS(24), EIGHT_SUMS(32), EIGHT_SUMS(40), EIGHT_SUMS(48),
        EIGHT_SUMS(56), EIGHT_SUMS(64), EIGHT_SUMS(72), EIGHT_SUMS(80), EIGHT_SUMS(88)
      : "l"(a), "l"(b), "n"(along_a == Along::kOwn ? 1 : 0), "n"(along_b == Along::kOwn ? 1 : 0));
}
#undef EIGHT_SUMS

// The sums are the products' until these are waited for. Keeps the compiler from moving a use of the sums up.
__device__ inline void Settle(float (&sums)[kTileHalves][kEach]) {
#pragma unroll
  for (int half = 0; half < kTileHalves; ++half) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) asm volatile("" : "+f"(sums[half][i])::"memory");
  }
}

__device__ inline void Clear(float (&sums)[kTileHalves][kEach]) {
#pragma unroll
  for (int half = 0; half < kTileHalves; ++half) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) sums[half][i] = 0;
  }
}

// Starts the products of 16 of a stage's 64: a stage has the boxes of a's halves, then those of b.
template <Along along_a, Along along_b, int halves = kTileHalves>
__device__ void AddProducts(float (&sums)[kTileHalves][kEach], const unsigned char* stage, int step) {
  const uint64_t b = Described<along_b>(stage + kTileHalves * kBoxBytes, step);
#pragma unroll
  for (int half = 0; half < halves; ++half)
    AddProduct<along_a, along_b>(sums[half], Described<along_a>(stage + half * kBoxBytes, step), b);
}

// ---- Bulk copies ----

// Bulk copies of a thread come in groups, and a thread waits for its own. Sizes and addresses are multiples of 16.
__device__ inline void CommitBulk() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until shared memory has been read.
__device__ inline void WaitForBulkReads() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void WaitForBulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
// Bulk copies begun behind this and a barrier see what this thread wrote to shared memory.
__device__ inline void ShowToBulk() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void BulkStore(void* to, const void* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(SharedAddress(from)),
               "r"(bytes)
               : "memory");
}
__device__ inline void BulkLoad(void* to, const void* from, int bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   SharedAddress(to)),
               "l"(from), "r"(bytes), "r"(SharedAddress(barrier))
               : "memory");
}

// ---- Roles of warpgroups ----

// Registers move from the warpgroup that loads to those that hold 192 sums a thread. `load` runs in one thread.
// `multiply` runs in the two others, with 0 and 1. A block ends with its cluster: the other block may write into its
// memory or arrive at its barriers until then.
template <typename Load, typename Multiply>
__device__ void DivideWork(const Load& load, const Multiply& multiply) {
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kLoadingRegisters));
    if (threadIdx.x == 0) load();
    __syncwarp();
    WaitForCluster();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kMultiplyingRegisters));
    multiply(warpgroup - 1);
    WaitForCluster();
  }
}

// ---- On the host ----

inline int DeviceAttribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess)
    return 0;
  return value;
}

inline bool DeviceIsHopper() {
  return DeviceAttribute(cudaDevAttrComputeCapabilityMajor) == 9 &&
         DeviceAttribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

// The driver's function, which needs no link to the driver this way. Null if the driver has none.
inline PFN_cuTensorMapEncodeTiled_v12000 MapEncoder() {
  static const auto encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) function = nullptr;
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return encoder;
}

// Boxes of `box_rows` rows, at most 256. What is outside of the matrix is loaded as 0.
inline cudaError_t MapBoxes(CUtensorMap* map, const __nv_bfloat16* matrix, int64_t rows, int64_t columns,
                            int box_rows = kBox) {
  const auto encode = MapEncoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {static_cast<cuuint64_t>(columns) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {kBox, static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  const CUresult result = encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), sizes,
                                 row_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace planwright::executor::ops
