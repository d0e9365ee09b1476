// Outer products of runs on Hopper's tensor cores (executor/kernels/outer_products.h). Compiled for sm_90a alone.
//
// A piece of work is a tile of 128 x 192 elements of one run's matrix, summed over all rows of the run. A thread block
// has a warpgroup that loads and two that multiply. These take pieces in turn: while one multiplies, the other adds its
// finished tile to the sums in memory. So the tensor cores work while 2.5 GB of sums come and go.
//
// A warp adds its share of a tile in shared memory, 8 rows at a time: bulk copies bring the old rows, threads add to
// them, bulk copies take them back. The first old rows come while the products are summed. On an H200 this takes 1.0
// ms. It took 1.3 ms when threads told memory to add what they held in registers, 8 bytes at a time.
//
// Two blocks form a cluster. They take tiles beside each other, which need the same columns of a: each loads half of
// them into the shared memory of both.
//
// Blocks are persistent. Each sorts the runs by length and takes every n-th piece, long ones first, so that all end at
// about the same time.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <limits>

#include "executor/kernels/outer_products.h"

namespace planwright::executor::ops {
namespace {

// A box is what one load brings: 64 rows of 64 elements. 64 elements are the 128 bytes over which swizzling goes.
constexpr int kBox = 64, kBoxBytes = kBox * kBox * static_cast<int>(sizeof(__nv_bfloat16));
constexpr int kInnerBoxes = 2, kWidthBoxes = 3, kBoxes = kInnerBoxes + kWidthBoxes;
constexpr int kTileInner = kInnerBoxes * kBox, kTileWidth = kWidthBoxes * kBox;
constexpr int kCluster = 2;
static_assert(kInnerBoxes == kCluster, "each block of a cluster loads one box of a for both");

constexpr int kStages = 4, kStageBytes = kBoxes * kBoxBytes;
constexpr int kWarpgroup = 128, kThreads = 3 * kWarpgroup;
constexpr int kMostRuns = 1024;
// A thread has so many. The loading warpgroup once and the other twice make 504, what three warpgroups begin with.
constexpr int kMultiplyingRegisters = 232, kLoadingRegisters = 40;

// Rows of the product of one instruction, the summed index of one instruction, and sums that a thread has of each.
constexpr int kProductRows = 64, kProductDepth = 16, kEach = kProductRows * kTileWidth / kWarpgroup;

struct Run {
  int first = 0, rows = 0;  // its rows
  int index = 0;            // its matrix
};

// A warp stages 8 rows of its tile. The gap behind each lets the 8 rows x 32 bytes that a warp writes at a time meet
// all banks evenly.
constexpr int kStagedRows = 8, kStagedPitch = kTileWidth + 8, kMultiplyingWarps = 2 * kWarpgroup / 32;

struct Shared {
  // Boxes of 64 columns of a, then boxes of 64 columns of b. Each is a pattern of 1024 bytes that repeats.
  alignas(1024) unsigned char stages[kStages][kStageBytes];
  uint64_t full[kStages], empty[kStages];  // barriers
  uint64_t old[kMultiplyingWarps];         // barriers: old sums have come
  Run runs[kMostRuns];                     // longest first
  union {
    int lengths[kMostRuns];  // in the order of runs; until the runs are sorted
    alignas(128) float staged[kMultiplyingWarps][kStagedRows][kStagedPitch];
  };
  int busy;  // runs that have rows
};

// Space for the shared memory to begin at a multiple of 1024.
constexpr int kSharedBytes = static_cast<int>(sizeof(Shared)) + 1024;
static_assert(kSharedBytes <= 227 * 1024, "a block of Hopper has no more");

struct Shape {
  int runs = 0;
  int inner = 0, width = 0;
  int tiles = 0, pairs = 0;  // of one run: pieces of work of a cluster; those beside each other
};

// ---- Barriers in shared memory ----

__device__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void Prepare(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(arrivals) : "memory");
}

// Waits until the phase of this parity is over. Right only if the phase before it is over.
__device__ void WaitFor(uint64_t* barrier, uint32_t parity) {
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

__device__ void ArriveExpecting(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(barrier)), "r"(bytes)
               : "memory");
}

// Arrives at the same barrier of one block of the cluster. Release at the scope of this block is enough: the other
// block reads nothing that this thread wrote.
__device__ void ArriveIn(int block, uint64_t* barrier) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(SharedAddress(barrier)),
      "r"(block)
      : "memory");
}

__device__ void WaitForCluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
}

// Named barriers, which do not count phases. 0 is that of __syncthreads.
enum NamedBarrier { kTurnOfFirst = 1, kTurnOfSecond = 2, kWithinFirst = 3, kWithinSecond = 4 };

__device__ void WaitAtNamed(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ void ArriveAtNamed(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// ---- Loads ----

__device__ void LoadBox(unsigned char* to, const CUtensorMap& map, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          SharedAddress(to)),
      "l"(&map), "r"(column), "r"(row), "r"(SharedAddress(barrier))
      : "memory");
}

// To the same offset in both blocks. Each gets a signal at its own barrier.
__device__ void LoadBoxForBoth(unsigned char* to, const CUtensorMap& map, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(SharedAddress(to)),
      "l"(&map), "r"(column), "r"(row), "r"(SharedAddress(barrier)), "h"(static_cast<uint16_t>((1 << kCluster) - 1))
      : "memory");
}

// ---- Products ----

// Describes boxes to the tensor cores. The summed index goes along rows, so both factors are stored "MN-major". Fields,
// in units of 16 bytes: the address; from bit 16 the distance from 64 columns to the next 64 (a box); from bit 32 the
// distance from 8 rows to the next 8 (8 times 128 bytes). 1 in the two highest bits: swizzled over 128 bytes.
__device__ uint64_t Described(const unsigned char* boxes) {
  constexpr uint64_t kPattern = 8 * 128;
  return uint64_t{1} << 62 | (kPattern >> 4) << 32 | uint64_t{kBoxBytes >> 4} << 16 |
         (SharedAddress(boxes) & 0x3FFFF) >> 4;
}

__device__ void BeginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void CommitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `behind` committed groups are unfinished.
template <int behind>
__device__ void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(behind) : "memory");
}

#define EIGHT_SUMS(i)                                                                                     \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
      "+f"(sum[i + 6]), "+f"(sum[i + 7])

// sum += a^T b for 16 rows: 64 columns of a, 192 of b. Thread t of the warpgroup has, for i < 24 and j < 2, the
// elements (16 (t / 32) + (t % 32) / 4 + 8 j, 8 i + 2 (t % 4)) and its right neighbour in sum[4 i + 2 j] and the next.
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
      "%96, %97, adds, 1, 1, 1, 1;\n"
      "}\n"
      : EIGHT_SUMS(0), EIGHT_SUMS(8), EIGHT_SUMS(16), EIGHT_SUMS(24), EIGHT_SUMS(32), EIGHT_SUMS(40), EIGHT_SUMS(48),
        EIGHT_SUMS(56), EIGHT_SUMS(64), EIGHT_SUMS(72), EIGHT_SUMS(80), EIGHT_SUMS(88)
      : "l"(a), "l"(b));
}
#undef EIGHT_SUMS

// The sums are the products' until these are waited for. Keeps the compiler from moving a use of the sums up.
__device__ void Settle(float (&sums)[kInnerBoxes][kEach]) {
#pragma unroll
  for (int half = 0; half < kInnerBoxes; ++half) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) asm volatile("" : "+f"(sums[half][i])::"memory");
  }
}

// Starts the products of 16 rows of a stage.
__device__ void AddProducts(float (&sums)[kInnerBoxes][kEach], const unsigned char* stage, int step) {
  const uint64_t rows = static_cast<uint64_t>(step) * (kProductDepth * 128 >> 4);
  const uint64_t b = Described(stage + kInnerBoxes * kBoxBytes) + rows;
#pragma unroll
  for (int half = 0; half < kInnerBoxes; ++half) AddProduct(sums[half], Described(stage + half * kBoxBytes) + rows, b);
}

// Clears the rows from `first` to the next multiple of 16 in all boxes of a stage: they belong to no run or to the next
// one. Swizzling moves elements only within a row, so rows are cleared as they lie. The tensor cores see it.
__device__ void ClearRows(unsigned char* stage, int first, int thread, int named_barrier) {
  constexpr int kChunks = 128 / sizeof(uint4);
  const int rows = (first + kProductDepth - 1) / kProductDepth * kProductDepth - first;
  for (int i = thread; i < kBoxes * rows * kChunks; i += kWarpgroup) {
    const int box = i / (rows * kChunks), at = i % (rows * kChunks);
    reinterpret_cast<uint4*>(stage + box * kBoxBytes + first * 128)[at] = make_uint4(0, 0, 0, 0);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  WaitAtNamed(named_barrier, kWarpgroup);
}

// ---- Adding a tile through shared memory ----

// Bulk copies of a thread come in groups, and a thread waits for its own. Sizes and addresses are multiples of 16.
__device__ void CommitBulk() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until shared memory has been read.
__device__ void WaitForBulkReads() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ void WaitForBulk() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
// Bulk copies begun behind this and a barrier see what this thread wrote to shared memory.
__device__ void ShowToBulk() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ void BulkStore(float* to, const float* from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(SharedAddress(from)),
               "r"(bytes)
               : "memory");
}
__device__ void BulkLoad(float* to, const float* from, int bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   SharedAddress(to)),
               "l"(from), "r"(bytes), "r"(SharedAddress(barrier))
               : "memory");
}

// A warp's share of a tile: four pieces of 8 rows. As inner is a multiple of 8, each is there wholly or not at all, and
// none is there behind one that is not.
struct WarpRows {
  __device__ WarpRows(float* matrix, int inner0, int width0, int thread, const Shape& shape)
      : row0(inner0 + thread / 32 * 16), inner(shape.inner), width(shape.width),
        bytes(max(min(kTileWidth, shape.width - width0), 0) * static_cast<int>(sizeof(float))),
        corner(matrix + width0) {}

  __device__ int First(int piece) const { return row0 + piece / 2 * kProductRows + piece % 2 * kStagedRows; }
  __device__ bool Has(int piece) const { return piece < 4 && bytes > 0 && First(piece) < inner; }
  __device__ float* Row(int piece, int row) const { return corner + static_cast<int64_t>(First(piece) + row) * width; }

  int row0, inner, width, bytes;
  float* corner;
};

// What a warp that multiplies stages. All of its threads call all of these together.
struct Stager {
  float (*staged)[kStagedPitch];
  uint64_t* old;
  uint32_t parity = 0;  // of the next wait

  // Begins to bring the old sums of a piece, once the piece before has been read.
  __device__ void BringOld(const WarpRows& rows, int piece) {
    if (!rows.Has(piece)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    WaitForBulkReads();
    if (lane == 0) ArriveExpecting(old, kStagedRows * rows.bytes);
    __syncwarp();
    if (lane < kStagedRows) BulkLoad(staged[lane], rows.Row(piece, lane), rows.bytes, old);
  }

  // Adds the warp's share of a tile to the old sums. BringOld has begun to bring the first piece.
  __device__ void AddTile(const float (&sums)[kInnerBoxes][kEach], const WarpRows& rows) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float* mine = &staged[lane / 4][lane % 4 * 2];
#pragma unroll
    for (int piece = 0; piece < 4; ++piece) {
      if (!rows.Has(piece)) break;
      WaitFor(old, parity);
      parity ^= 1;
#pragma unroll
      for (int i = 0; i < kTileWidth / 8; ++i) {
        float2& at = *reinterpret_cast<float2*>(mine + 8 * i);
        const int from = 4 * i + 2 * (piece % 2);
        const float2 before = at;
        at = make_float2(sums[piece / 2][from] + before.x, sums[piece / 2][from + 1] + before.y);
      }
      ShowToBulk();
      __syncwarp();
      if (lane < kStagedRows) {
        BulkStore(rows.Row(piece, lane), staged[lane], rows.bytes);
        CommitBulk();
      }
      BringOld(rows, piece + 1);
    }
  }
};

// ---- The work of a block ----

// All blocks find the same order: by length, then by index.
__device__ void SortRuns(Shared& shared, const int* ends, int runs) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) shared.busy = runs;
  for (int e = thread; e < runs; e += kThreads) shared.lengths[e] = max(ends[e] - (e == 0 ? 0 : ends[e - 1]), 0);
  __syncthreads();
  for (int e = thread; e < runs; e += kThreads) {
    const int length = shared.lengths[e];
    int rank = 0;
    for (int other = 0; other < runs; ++other)
      rank += shared.lengths[other] > length || (shared.lengths[other] == length && other < e);
    shared.runs[rank] = {e == 0 ? 0 : ends[e - 1], length, e};
    if (length == 0) atomicMin(&shared.busy, rank);
  }
}

// Piece `index` of the cluster's work.
struct Piece {
  __device__ Piece(const Shared& shared, const Shape& shape, int index)
      : run(shared.runs[index / shape.tiles]), inner0(index % shape.tiles / shape.pairs * kTileInner),
        width0((index % shape.tiles % shape.pairs * kCluster + static_cast<int>(blockIdx.x) % kCluster) * kTileWidth) {}

  Run run;
  int inner0, width0;  // where the tile of this block begins
};

// Which stage the next 64 rows go through, and how often the stage was used before, as the parity of that number.
struct Turn {
  __device__ explicit Turn(uint32_t block) : stage(static_cast<int>(block % kStages)), parity(block / kStages & 1) {}
  __device__ void Advance() {
    if (++stage < kStages) return;
    stage = 0, parity ^= 1;
  }

  int stage;
  uint32_t parity;
};

// One thread loads the rows of all pieces, 64 at a time, as stages become free in both blocks of the cluster.
__device__ void Load(Shared& shared, const CUtensorMap& a, const CUtensorMap& b, const Shape& shape) {
  const int block = static_cast<int>(blockIdx.x) % kCluster, clusters = static_cast<int>(gridDim.x) / kCluster;
  const int pieces = shared.busy * shape.tiles;
  Turn turn(0);
  for (int index = static_cast<int>(blockIdx.x) / kCluster; index < pieces; index += clusters) {
    const Piece piece(shared, shape, index);
    for (int row = 0; row < piece.run.rows; row += kBox, turn.Advance()) {
      unsigned char* stage = shared.stages[turn.stage];
      uint64_t* full = &shared.full[turn.stage];
      WaitFor(&shared.empty[turn.stage], turn.parity ^ 1);
      ArriveExpecting(full, kStageBytes);
      LoadBoxForBoth(stage + block * kBoxBytes, a, piece.inner0 + block * kBox, piece.run.first + row, full);
      for (int i = 0; i < kWidthBoxes; ++i)
        LoadBox(stage + (kInnerBoxes + i) * kBoxBytes, b, piece.width0 + i * kBox, piece.run.first + row, full);
    }
  }
}

// Tells both blocks of the cluster that this warp has read a stage.
__device__ void Release(Shared& shared, int stage) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane < kCluster) ArriveIn(lane, &shared.empty[stage]);
}

// Warpgroup `group` of the two that multiply takes every second piece.
__device__ void Multiply(Shared& shared, float* matrices, int group, const Shape& shape) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const int clusters = static_cast<int>(gridDim.x) / kCluster, pieces = shared.busy * shape.tiles;
  const int first = static_cast<int>(blockIdx.x) / kCluster;
  const int64_t size = static_cast<int64_t>(shape.inner) * shape.width;
  const int warp = group * kWarpgroup / 32 + thread / 32;
  Stager stager = {shared.staged[warp], &shared.old[warp]};
  uint32_t blocks = 0;  // of 64 rows, of all pieces before
  for (int index = first, number = 0; index < pieces; index += clusters, ++number) {
    const Piece piece(shared, shape, index);
    Turn turn(blocks);
    blocks += (piece.run.rows + kBox - 1) / kBox;
    if (number % 2 != group) continue;
    float* matrix = matrices + piece.run.index * size;
    stager.BringOld(WarpRows(matrix, piece.inner0, piece.width0, thread, shape), 0);
    // Until the rows of the piece before have come, the barriers of this piece may be a round behind.
    if (number > 0) WaitAtNamed(group == 0 ? kTurnOfFirst : kTurnOfSecond, 2 * kWarpgroup);

    float sums[kInnerBoxes][kEach];
#pragma unroll
    for (int half = 0; half < kInnerBoxes; ++half) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) sums[half][i] = 0;
    }
    int unreleased = -1;
    for (int row = kBox; row <= piece.run.rows; row += kBox, turn.Advance()) {
      WaitFor(&shared.full[turn.stage], turn.parity);
      BeginProducts();
#pragma unroll
      for (int step = 0; step < kBox / kProductDepth; ++step) AddProducts(sums, shared.stages[turn.stage], step);
      CommitProducts();
      WaitForProducts<1>();  // those of the stage before
      if (unreleased >= 0) Release(shared, unreleased);
      unreleased = turn.stage;
    }
    const int rest = piece.run.rows % kBox;
    if (rest > 0) {
      WaitFor(&shared.full[turn.stage], turn.parity);
      ClearRows(shared.stages[turn.stage], rest, thread, group == 0 ? kWithinFirst : kWithinSecond);
#pragma unroll 1
      for (int step = 0; step * kProductDepth < rest; ++step) {
        BeginProducts();
        AddProducts(sums, shared.stages[turn.stage], step);
        CommitProducts();
      }
    }
    if (index + clusters < pieces) ArriveAtNamed(group == 0 ? kTurnOfSecond : kTurnOfFirst, 2 * kWarpgroup);
    WaitForProducts<0>();
    Settle(sums);
    if (unreleased >= 0) Release(shared, unreleased);
    if (rest > 0) Release(shared, turn.stage);

    stager.AddTile(sums, WarpRows(matrix, piece.inner0, piece.width0, thread, shape));
  }
  WaitForBulk();
}

__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kCluster, 1, 1)
    OuterProductsKernel(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* sums,
                        const int* ends, const __grid_constant__ Shape shape) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory + (1024 - SharedAddress(memory) % 1024) % 1024);
  SortRuns(shared, ends, shape.runs);
  ShowToBulk();  // old sums will come to where lengths were
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      Prepare(&shared.full[i], 1);                            // the thread that loads
      Prepare(&shared.empty[i], kCluster * kWarpgroup / 32);  // warps of the warpgroup that multiplies, in each block
    }
    for (uint64_t& old : shared.old) Prepare(&old, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  WaitForCluster();

  // Registers move from the warpgroup that loads to those that hold 192 sums a thread.
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kLoadingRegisters));
    if (threadIdx.x == 0) Load(shared, a, b, shape);
    __syncwarp();
    WaitForCluster();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kMultiplyingRegisters));
    Multiply(shared, sums, warpgroup - 1, shape);
    WaitForCluster();  // a block must not end while the other may write into its memory or arrive at its barriers
  }
}

// ---- On the host ----

int Attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess)
    return 0;
  return value;
}

// The driver's function, which needs no link to the driver this way. Null if the driver has none.
PFN_cuTensorMapEncodeTiled_v12000 MapEncoder() {
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

// What is outside of the matrix is loaded as 0.
cudaError_t MapBoxes(CUtensorMap* map, const __nv_bfloat16* matrix, int64_t rows, int64_t columns) {
  const auto encode = MapEncoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[] = {static_cast<cuuint64_t>(columns) * sizeof(__nv_bfloat16)};
  const cuuint32_t box[] = {kBox, kBox}, steps[] = {1, 1};
  const CUresult result = encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(matrix), sizes,
                                 row_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

int64_t Tiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

}  // namespace

bool HopperTakes(const OuterProducts& task) {
  constexpr int64_t kLimit = std::numeric_limits<int>::max() - 2 * kCluster * kTileWidth;
  const auto on_16_bytes = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; };
  return task.runs > 0 && task.runs <= kMostRuns && task.rows > 0 && task.rows <= kLimit && task.inner > 0 &&
         task.inner <= kLimit && task.inner % 8 == 0 && task.width > 0 && task.width <= kLimit && task.width % 8 == 0 &&
         task.runs * Tiles(task.inner, kTileInner) * Tiles(task.width, kCluster * kTileWidth) <= kLimit &&
         on_16_bytes(task.sums) && on_16_bytes(task.a) && on_16_bytes(task.b) &&
         Attribute(cudaDevAttrComputeCapabilityMajor) == 9 && Attribute(cudaDevAttrComputeCapabilityMinor) == 0;
}

cudaError_t LaunchAddOuterProductsOfRuns(const OuterProducts& task, cudaStream_t stream) {
  CUtensorMap a, b;
  cudaError_t error = MapBoxes(&a, task.a, task.rows, task.inner);
  if (error == cudaSuccess) error = MapBoxes(&b, task.b, task.rows, task.width);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(OuterProductsKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;

  const int64_t pairs = Tiles(task.width, kCluster * kTileWidth), tiles = Tiles(task.inner, kTileInner) * pairs;
  const Shape shape = {static_cast<int>(task.runs), static_cast<int>(task.inner), static_cast<int>(task.width),
                       static_cast<int>(tiles), static_cast<int>(pairs)};
  const int64_t processors = Attribute(cudaDevAttrMultiProcessorCount);
  const int64_t clusters = std::min(std::max<int64_t>(processors / kCluster, 1), task.runs * tiles);
  OuterProductsKernel<<<static_cast<unsigned>(clusters * kCluster), kThreads, kSharedBytes, stream>>>(a, b, task.sums,
                                                                                                      task.ends, shape);
  return cudaSuccess;
}

}  // namespace planwright::executor::ops
