// Outer products of runs on Hopper's tensor cores (executor/kernels/outer_products.h). Compiled for sm_90a alone.
//
// A piece of work is a tile of 128 x 192 elements of one run's matrix, summed over all rows of the run. A thread block
// has a warpgroup that loads and two that multiply. These take pieces in turn: while one multiplies, the other adds its
// finished tile to the sums in memory. So the tensor cores work while 2.5 GB of sums come and go.
//
// Where a part of a run ends, rows are loaded in groups of 16, and rows of a group that are not the run's are cleared.
//
// A warp adds its share of a tile in shared memory, 8 rows at a time: bulk copies bring the old rows, threads add to
// them, bulk copies take them back. The first old rows come while the products are summed. On an H200 this takes 0.97
// ms, and 1.12 ms for seconds on end, when power is what limits it. The products alone take 0.62 and 0.75 ms. Bringing
// twice as many old rows at a time is not faster (0.97), so latency is not what is missing. Two forms that let memory
// add are slower: bulk copies that add (1.16), and threads that add what they hold in registers (1.3). A task that
// writes brings no old rows.
//
// Two blocks form a cluster. They take tiles beside each other, which need the same columns of a: each loads half of
// them into the shared memory of both. Four blocks that take 2 x 2 tiles and load half of both factors for each other
// are slower (1.05 where pairs take 0.98), although rows that come from the L2 cache are then 3.3 GB in place of 5.3.
//
// Blocks are persistent. Each sorts the runs by their groups and takes every n-th piece, long ones first, so that all
// end at about the same time.
#include <algorithm>
#include <limits>

#include "executor/kernels/hopper.cuh"
#include "executor/kernels/outer_products.h"
#include "executor/kernels/run_parts.cuh"

namespace planwright::executor::ops {
namespace {

static_assert(kTileHalves == kCluster, "each block of a cluster loads one box of a for both");

constexpr int kBoxes = kStageBytes / kBoxBytes;
static_assert(kGroupRows == kProductDepth, "one instruction takes one group of rows");

struct Run {
  int groups = 0;  // of its rows
  int index = 0;   // its matrix
};

// A warp stages 8 rows of its tile. The gap behind each lets the 8 rows x 32 bytes that a warp writes at a time meet
// all banks evenly.
constexpr int kStagedRows = 8, kStagedPitch = kTileColumns + 8;

struct Shared {
  Ring ring;                        // in a stage: boxes of 64 columns of a, then boxes of 64 columns of b
  uint64_t old[kMultiplyingWarps];  // barriers: old sums have come
  int ends[kMostParts];             // OuterProducts::ends
  Run runs[kMostParts];             // longest first
  union {
    int lengths[kMostParts];  // in groups, in the order of runs; until the runs are sorted
    alignas(128) float staged[kMultiplyingWarps][kStagedRows][kStagedPitch];
  };
  int busy;  // runs that have rows; all if the task writes
};

// Space for the shared memory to begin at a multiple of 1024.
constexpr int kSharedBytes = static_cast<int>(sizeof(Shared)) + 1024;
static_assert(kSharedBytes <= 227 * 1024, "a block of Hopper has no more");

struct Shape {
  int parts = 0, runs = 0;
  int inner = 0, width = 0;
  int tiles = 0, pairs = 0;  // of one run: pieces of work of a cluster; those beside each other
  bool writes = false;       // OuterProducts::writes
};

// Clears, in all boxes of a stage, the rows of the groups from `group` on that are not of the run: they are of another
// one, or of none. `part`: of that group; it goes on as far as these groups do. Swizzling moves elements only within a
// row, so rows are cleared as they lie. The tensor cores see it.
__device__ void ClearOthers(unsigned char* stage, RunPart& part, int group, int thread, int named_barrier) {
  // A thread clears the same 16 bytes of every second row.
  const int box = thread / 8 % 8;
  const uint32_t column = SharedAddress(stage) + box * kBoxBytes + thread % 8 * 16;
  for (bool more = true; more;) {
    more = !part.IsLast() && part.End() < group + kBoxGroups;
    const int end = (part.IsLast() ? kBoxGroups : min(part.End() - group, kBoxGroups)) * kGroupRows;
    for (int row = (part.FullEnd() - group) * kGroupRows + part.RowsBehindFull() + thread / 64; row < end; row += 2)
      if (box < kBoxes) asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(column + row * 128), "r"(0));
    if (more) part.Next();
  }
  ShowToBulk();
  WaitAtNamed(named_barrier, kWarpgroup);
}

// ---- Adding a tile through shared memory ----

// A warp's share of a tile: four pieces of 8 rows. As inner is a multiple of 8, each is there wholly or not at all, and
// none is there behind one that is not.
struct WarpRows {
  __device__ WarpRows(float* matrix, int inner0, int width0, int thread, const Shape& shape)
      : row0(inner0 + thread / 32 * 16), inner(shape.inner), width(shape.width),
        bytes(max(min(kTileColumns, shape.width - width0), 0) * static_cast<int>(sizeof(float))),
        corner(matrix + width0) {}

  __device__ int First(int piece) const { return row0 + piece / 2 * kBox + piece % 2 * kStagedRows; }
  __device__ bool Has(int piece) const { return piece < 4 && bytes > 0 && First(piece) < inner; }
  __device__ float* Row(int piece, int row) const { return corner + static_cast<int64_t>(First(piece) + row) * width; }

  int row0, inner, width, bytes;
  float* corner;
};

// What a warp that multiplies stages. All of its threads call all of these together.
struct Stager {
  float (*staged)[kStagedPitch];
  uint64_t* old;
  bool writes;
  uint32_t parity = 0;  // of the next wait

  // Begins to bring the old sums of a piece, once the piece before has been read.
  __device__ void BringOld(const WarpRows& rows, int piece) {
    if (!rows.Has(piece)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    WaitForBulkReads();
    if (writes) {  // all lanes write to what has been read
      __syncwarp();
      return;
    }
    if (lane == 0) ArriveExpecting(old, kStagedRows * rows.bytes);
    __syncwarp();
    if (lane < kStagedRows) BulkLoad(staged[lane], rows.Row(piece, lane), rows.bytes, old);
  }

  // Adds the warp's share of a tile to the old sums. BringOld has begun to bring the first piece.
  __device__ void AddTile(const float (&sums)[kTileHalves][kEach], const WarpRows& rows) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float* mine = &staged[lane / 4][lane % 4 * 2];
#pragma unroll
    for (int piece = 0; piece < 4; ++piece) {
      if (!rows.Has(piece)) break;
      if (!writes) WaitFor(old, parity);
      parity ^= 1;
#pragma unroll
      for (int i = 0; i < kTileColumns / 8; ++i) {
        float2& at = *reinterpret_cast<float2*>(mine + 8 * i);
        const int from = 4 * i + 2 * (piece % 2);
        const float2 before = writes ? make_float2(0, 0) : at;
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

// All blocks find the same order: by groups, then by index.
__device__ void SortRuns(Shared& shared, const int* ends, const Shape& shape) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) shared.busy = shape.runs;
  for (int i = thread; i < shape.parts * shape.runs; i += kThreads) shared.ends[i] = ends[i];
  __syncthreads();
  for (int e = thread; e < shape.runs; e += kThreads)
    shared.lengths[e] = RunPart::GroupsOf(shared.ends, shape.parts, shape.runs, e);
  __syncthreads();
  for (int e = thread; e < shape.runs; e += kThreads) {
    const int length = shared.lengths[e];
    int rank = 0;
    for (int other = 0; other < shape.runs; ++other)
      rank += shared.lengths[other] > length || (shared.lengths[other] == length && other < e);
    shared.runs[rank] = {length, e};
    if (length == 0 && !shape.writes) atomicMin(&shared.busy, rank);
  }
}

// Piece `index` of the cluster's work.
struct Piece {
  __device__ Piece(const Shared& shared, const Shape& shape, int index)
      : run(shared.runs[index / shape.tiles]), inner0(index % shape.tiles / shape.pairs * kTileRows),
        width0((index % shape.tiles % shape.pairs * kCluster + static_cast<int>(blockIdx.x) % kCluster) * kTileColumns),
        part(shared.ends, shape.parts, shape.runs, run.index) {}

  Run run;
  int inner0, width0;  // where the tile of this block begins
  RunPart part;        // from the first on
};

// Loads a stage: 64 rows of the run, from `group` on. `part`: of that group.
__device__ void LoadStage(unsigned char* stage, const PartMaps& a, const PartMaps& b, const Piece& piece, RunPart part,
                          int group, uint64_t* full) {
  const int block = static_cast<int>(blockIdx.x) % kCluster;
  const auto load = [&](const CUtensorMap& of_a, const CUtensorMap& of_b, int offset, int row) {
    LoadBoxForBoth(stage + block * kBoxBytes + offset, of_a, piece.inner0 + block * kBox, row, full);
    for (int i = 0; i < kTileColumns / kBox; ++i)
      LoadBox(stage + (kTileHalves + i) * kBoxBytes + offset, of_b, piece.width0 + i * kBox, row, full);
  };
  if (part.FillsBox(group)) return load(a.boxes, b.boxes, 0, part.Row(group));
  int rows[kBoxGroups];
  part.RowsOfBox(rows, group);
#pragma unroll
  for (int i = 0; i < kBoxGroups; ++i) load(a.groups, b.groups, i * kGroupBytes, rows[i]);
}

// One thread loads the rows of all pieces, 64 at a time, as stages become free in both blocks of the cluster.
__device__ void Load(Shared& shared, const PartMaps& a, const PartMaps& b, const Shape& shape) {
  const int clusters = static_cast<int>(gridDim.x) / kCluster, pieces = shared.busy * shape.tiles;
  Turn turn(0);
  for (int index = static_cast<int>(blockIdx.x) / kCluster; index < pieces; index += clusters) {
    const Piece piece(shared, shape, index);
    RunPart part = piece.part;
    for (int group = 0; group < piece.run.groups; group += kBoxGroups, turn.Advance()) {
      uint64_t* full = &shared.ring.full[turn.stage];
      part.GoTo(group);
      WaitFor(&shared.ring.empty[turn.stage], turn.parity ^ 1);
      ArriveExpecting(full, kStageBytes);
      LoadStage(shared.ring.stages[turn.stage], a, b, piece, part, group, full);
    }
  }
}

// Warpgroup `own` of the two that multiply takes every second piece.
__device__ void Multiply(Shared& shared, float* matrices, int own, const Shape& shape) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const int clusters = static_cast<int>(gridDim.x) / kCluster, pieces = shared.busy * shape.tiles;
  const int first = static_cast<int>(blockIdx.x) / kCluster;
  const int64_t size = static_cast<int64_t>(shape.inner) * shape.width;
  const int warp = own * kWarpgroup / 32 + thread / 32;
  Stager stager = {shared.staged[warp], &shared.old[warp], shape.writes};
  uint32_t blocks = 0;  // of 64 rows, of all pieces before
  for (int index = first, number = 0; index < pieces; index += clusters, ++number) {
    const Piece piece(shared, shape, index);
    Turn turn(blocks);
    blocks += (piece.run.groups + kBoxGroups - 1) / kBoxGroups;
    if (number % 2 != own) continue;
    float* matrix = matrices + piece.run.index * size;
    stager.BringOld(WarpRows(matrix, piece.inner0, piece.width0, thread, shape), 0);
    // Until the rows of the piece before have come, the barriers of this piece may be a round behind.
    if (number > 0) WaitAtNamed(own == 0 ? kTurnOfFirst : kTurnOfSecond, 2 * kWarpgroup);

    float sums[kTileHalves][kEach];
    Clear(sums);
    RunPart part = piece.part;
    int unreleased = -1, group = 0;
    while (group < piece.run.groups) {
      part.GoTo(group);
      for (const int full = part.FullEnd(); group + kBoxGroups <= full; group += kBoxGroups, turn.Advance()) {
        WaitFor(&shared.ring.full[turn.stage], turn.parity);
        BeginProducts();
#pragma unroll
        for (int step = 0; step < kBox / kProductDepth; ++step)
          AddProducts<Along::kOwn, Along::kOwn>(sums, shared.ring.stages[turn.stage], step);
        CommitProducts();
        WaitForProducts<1>();  // those of the stage before
        if (unreleased >= 0) shared.ring.Release(unreleased);
        unreleased = turn.stage;
      }
      if (group == part.End()) continue;
      WaitFor(&shared.ring.full[turn.stage], turn.parity);
      ClearOthers(shared.ring.stages[turn.stage], part, group, thread, own == 0 ? kWithinFirst : kWithinSecond);
#pragma unroll 1
      for (int step = 0; step < min(kBoxGroups, piece.run.groups - group); ++step) {
        BeginProducts();
        AddProducts<Along::kOwn, Along::kOwn>(sums, shared.ring.stages[turn.stage], step);
        CommitProducts();
      }
      WaitForProducts<1>();
      if (unreleased >= 0) shared.ring.Release(unreleased);
      unreleased = turn.stage;
      group += kBoxGroups, turn.Advance();
    }
    if (index + clusters < pieces) ArriveAtNamed(own == 0 ? kTurnOfSecond : kTurnOfFirst, 2 * kWarpgroup);
    WaitForProducts<0>();
    Settle(sums);
    if (unreleased >= 0) shared.ring.Release(unreleased);

    stager.AddTile(sums, WarpRows(matrix, piece.inner0, piece.width0, thread, shape));
  }
  WaitForBulk();
}

__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kCluster, 1, 1)
    OuterProductsKernel(const __grid_constant__ PartMaps a, const __grid_constant__ PartMaps b, float* sums,
                        const int* ends, const __grid_constant__ Shape shape) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory + (1024 - SharedAddress(memory) % 1024) % 1024);
  SortRuns(shared, ends, shape);
  ShowToBulk();  // old sums will come to where lengths were
  if (threadIdx.x == 0) {
    shared.ring.PrepareBarriers();
    for (uint64_t& old : shared.old) Prepare(&old, 1);
    ShowPrepared();
  }
  WaitForCluster();

  DivideWork([&] { Load(shared, a, b, shape); }, [&](int own) { Multiply(shared, sums, own, shape); });
}

// ---- On the host ----

int64_t Tiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

}  // namespace

bool HopperTakes(const OuterProducts& task) {
  constexpr int64_t kLimit = std::numeric_limits<int>::max() - 2 * kCluster * kTileColumns;
  const auto on_16_bytes = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; };
  return task.parts > 0 && task.runs > 0 && task.parts <= kMostParts && task.runs <= kMostParts &&
         task.parts * task.runs <= kMostParts && task.rows > 0 && task.rows <= kLimit && task.inner > 0 &&
         task.inner <= kLimit && task.inner % 8 == 0 && task.width > 0 && task.width <= kLimit && task.width % 8 == 0 &&
         task.runs * Tiles(task.inner, kTileRows) * Tiles(task.width, kCluster * kTileColumns) <= kLimit &&
         on_16_bytes(task.sums) && on_16_bytes(task.a) && on_16_bytes(task.b) && DeviceIsHopper();
}

cudaError_t LaunchAddOuterProductsOfRuns(const OuterProducts& task, cudaStream_t stream) {
  PartMaps a, b;
  cudaError_t error = MapParts(&a, task.a, task.rows, task.inner);
  if (error == cudaSuccess) error = MapParts(&b, task.b, task.rows, task.width);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(OuterProductsKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;

  const int64_t pairs = Tiles(task.width, kCluster * kTileColumns), tiles = Tiles(task.inner, kTileRows) * pairs;
  const Shape shape = {static_cast<int>(task.parts),
                       static_cast<int>(task.runs),
                       static_cast<int>(task.inner),
                       static_cast<int>(task.width),
                       static_cast<int>(tiles),
                       static_cast<int>(pairs),
                       task.writes};
  const int64_t processors = DeviceAttribute(cudaDevAttrMultiProcessorCount);
  const int64_t clusters = std::min(std::max<int64_t>(processors / kCluster, 1), task.runs * tiles);
  OuterProductsKernel<<<static_cast<unsigned>(clusters * kCluster), kThreads, kSharedBytes, stream>>>(a, b, task.sums,
                                                                                                      task.ends, shape);
  return cudaSuccess;
}

}  // namespace planwright::executor::ops
