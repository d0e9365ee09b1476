// Products of runs of rows on Hopper's tensor cores (executor/kernels/run_products.h). Compiled for sm_90a alone.
//
// A piece of work is a tile of 128 rows of one run and 192 columns, summed over all of the run's matrix. The warpgroups
// that multiply take pieces in turn: while one multiplies, the other rounds its finished tile and stores it. The last
// tile of a run, if it has at most 64 rows, takes half the products.
//
// The blocks of a cluster take tiles beside each other, which need the same rows of x: each loads half of them into the
// shared memory of both. Clusters are persistent and take every n-th pair of tiles, those of a run one after another,
// so that its matrix is read from memory once.
//
// Where a part of a run ends a tile has rows of several. There its rows are loaded in groups of 16; results are stored
// row by row in any case.
#include <algorithm>
#include <limits>

#include "executor/kernels/hopper.cuh"
#include "executor/kernels/run_parts.cuh"
#include "executor/kernels/run_products.h"

namespace planwright::executor::ops {
namespace {

constexpr int kTileGroups = kTileRows / kGroupRows;

// A warp stages 16 rows of its tile. With the gap behind each, the 8 rows x 16 bytes that a warp writes at a time meet
// all banks.
constexpr int kStagedRows = 16, kStagedPitch = kTileColumns + 8;

struct Shared {
  Ring ring;  // in a stage: two boxes of x; then 192 columns of the matrix
  alignas(128) __nv_bfloat16 staged[kMultiplyingWarps][kStagedRows][kStagedPitch];
  int ends[kMostParts];            // RunProducts::ends
  int groups[kMostParts];          // of each run
  int first_tile[kMostParts + 1];  // of each run its first tile of rows, and behind the last how many there are
};

// Space for the shared memory to begin at a multiple of 1024.
constexpr int kSharedBytes = static_cast<int>(sizeof(Shared)) + 1024;
static_assert(kSharedBytes <= 227 * 1024, "a block of Hopper has no more");

struct Shape {
  int parts = 0, runs = 0;
  int inner = 0, width = 0;
  int pairs = 0;  // of tiles beside each other
};

// By one warp.
__device__ void DivideRuns(Shared& shared, const Shape& shape) {
  const int lane = static_cast<int>(threadIdx.x);
  int tiles_before = 0;
  for (int base = 0; base < shape.runs; base += 32) {
    const int run = base + lane;
    const int groups = run < shape.runs ? RunPart::GroupsOf(shared.ends, shape.parts, shape.runs, run) : 0;
    const int own = (groups + kTileGroups - 1) / kTileGroups;
    int tiles = own;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(~0u, tiles, distance);
      if (lane >= distance) tiles += before;
    }
    if (run < shape.runs) shared.groups[run] = groups, shared.first_tile[run] = tiles_before + tiles - own;
    if (run == shape.runs - 1) shared.first_tile[shape.runs] = tiles_before + tiles;
    tiles_before += __shfl_sync(~0u, tiles, 31);
  }
}

// The pieces of a cluster, one after another.
struct Pieces {
  __device__ Pieces(const Shared& s, const Shape& z)
      : shared(s), shape(z), index(static_cast<int>(blockIdx.x) / kCluster), count(s.first_tile[z.runs] * z.pairs) {
    Find();
  }

  __device__ bool Has() const { return index < count; }
  __device__ bool HasNext() const { return index + Step() < count; }
  __device__ void Advance() {
    index += Step();
    Find();
  }
  __device__ static int Step() { return static_cast<int>(gridDim.x) / kCluster; }

  // The run of this piece: no earlier one than that of the piece before.
  __device__ void Find() {
    if (!Has()) return;
    const int tile = index / shape.pairs;
    while (shared.first_tile[run + 1] <= tile) ++run;
    group0 = (tile - shared.first_tile[run]) * kTileGroups;
    groups = min(shared.groups[run] - group0, kTileGroups);
    column0 = (index % shape.pairs * kCluster + static_cast<int>(blockIdx.x) % kCluster) * kTileColumns;
  }
  __device__ int Halves() const { return groups <= kBoxGroups ? 1 : kTileHalves; }
  // Where the run begins.
  __device__ RunPart Part() const { return {shared.ends, shape.parts, shape.runs, run}; }

  const Shared& shared;
  const Shape& shape;
  int index, count;
  int run = 0, group0 = 0, groups = 0, column0 = 0;  // where the tile of this block begins, and groups that it has
};

// One thread loads what all pieces need, 64 of the summed index at a time, as stages become free in both blocks.
template <bool transposed>
__device__ void Load(Shared& shared, const PartMaps& x, const CUtensorMap& matrices, const Shape& shape) {
  const int block = static_cast<int>(blockIdx.x) % kCluster;
  Turn turn(0);
  for (Pieces piece(shared, shape); piece.Has(); piece.Advance()) {
    const int halves = piece.Halves();
    const int bytes = kStageBytes - (kTileHalves - halves) * kBoxBytes, group = piece.group0 + block * kBoxGroups;
    RunPart part = piece.Part();
    part.GoTo(group);
    const bool fills = part.FillsBox(group);
    int rows[kBoxGroups] = {part.Row(group)};
    if (!fills) part.RowsOfBox(rows, group);
    for (int k = 0; k < shape.inner; k += kBox, turn.Advance()) {
      unsigned char *stage = shared.ring.stages[turn.stage], *matrix = stage + kTileHalves * kBoxBytes;
      uint64_t* full = &shared.ring.full[turn.stage];
      WaitFor(&shared.ring.empty[turn.stage], turn.parity ^ 1);
      ArriveExpecting(full, bytes);
      if (block < halves) {
        unsigned char* half = stage + block * kBoxBytes;
        if (fills) {
          LoadBoxForBoth(half, x.boxes, k, rows[0], full);
        } else {
#pragma unroll
          for (int i = 0; i < kBoxGroups; ++i) LoadBoxForBoth(half + i * kGroupBytes, x.groups, k, rows[i], full);
        }
      }
      if (transposed) {
        LoadBox(matrix, matrices, k, piece.run * shape.width + piece.column0, full);
      } else {
        for (int i = 0; i < kTileColumns / kBox; ++i)
          LoadBox(matrix + i * kBoxBytes, matrices, piece.column0 + i * kBox, piece.run * shape.inner + k, full);
      }
    }
  }
}

// Products of a tile. `hand_over` runs when the last ones are started.
template <Along along_matrix, int halves, typename HandOver>
__device__ void SumTile(float (&sums)[kTileHalves][kEach], Shared& shared, Turn turn, int inner,
                        const HandOver& hand_over) {
  Clear(sums);
  int unreleased = -1;
  for (int k = 0; k < inner; k += kBox, turn.Advance()) {
    WaitFor(&shared.ring.full[turn.stage], turn.parity);
    BeginProducts();
#pragma unroll
    for (int step = 0; step < kBox / kProductDepth; ++step)
      AddProducts<Along::kSummed, along_matrix, halves>(sums, shared.ring.stages[turn.stage], step);
    CommitProducts();
    WaitForProducts<1>();  // those of the stage before
    if (unreleased >= 0) shared.ring.Release(unreleased);
    unreleased = turn.stage;
  }
  hand_over();
  WaitForProducts<0>();
  Settle(sums);
  shared.ring.Release(unreleased);
}

// Rounds and stores a warp's share of a tile, 16 rows of each half.
__device__ void StoreTile(const float (&sums)[kTileHalves][kEach], __nv_bfloat16 (*staged)[kStagedPitch],
                          __nv_bfloat16* out, const Pieces& piece, int width) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const int bytes = min(kTileColumns, width - piece.column0) * static_cast<int>(sizeof(__nv_bfloat16));
  if (bytes <= 0) return;
  __nv_bfloat16* mine = &staged[lane / 4][lane % 4 * 2];
  RunPart part = piece.Part();
#pragma unroll
  for (int half = 0; half < kTileHalves; ++half) {
    const int row = half * kBox + warp * kStagedRows;
    if (row >= piece.groups * kGroupRows) break;
    WaitForBulkReads();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kTileColumns / 8; ++i) {
      const float* sum = sums[half] + 4 * i;
      *reinterpret_cast<__nv_bfloat162*>(mine + 8 * i) = __floats2bfloat162_rn(sum[0], sum[1]);
      *reinterpret_cast<__nv_bfloat162*>(mine + 8 * kStagedPitch + 8 * i) = __floats2bfloat162_rn(sum[2], sum[3]);
    }
    ShowToBulk();
    __syncwarp();
    const int group = piece.group0 + (row + lane) / kGroupRows, within = lane % kGroupRows;
    if (lane < kStagedRows) {
      part.GoTo(group);
      if (within < part.Rows(group))
        BulkStore(out + static_cast<int64_t>(part.Row(group) + within) * width + piece.column0, staged[lane], bytes);
    }
    CommitBulk();
  }
}

// Warpgroup `group` of the two that multiply takes every second piece.
template <Along along_matrix>
__device__ void Multiply(Shared& shared, __nv_bfloat16* out, int group, const Shape& shape) {
  const int warp = group * kWarpgroup / 32 + static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const uint32_t blocks = static_cast<uint32_t>(shape.inner / kBox);
  uint32_t number = 0;
  for (Pieces piece(shared, shape); piece.Has(); piece.Advance(), ++number) {
    if (static_cast<int>(number % 2) != group) continue;
    // Until the stages of the piece before have come, the barriers of this piece may be a round behind.
    if (number > 0) WaitAtNamed(group == 0 ? kTurnOfFirst : kTurnOfSecond, 2 * kWarpgroup);
    const auto hand_over = [&] {
      if (piece.HasNext()) ArriveAtNamed(group == 0 ? kTurnOfSecond : kTurnOfFirst, 2 * kWarpgroup);
    };
    const Turn turn(number * blocks);
    float sums[kTileHalves][kEach];
    if (piece.Halves() == 1) {
      SumTile<along_matrix, 1>(sums, shared, turn, shape.inner, hand_over);
    } else {
      SumTile<along_matrix, kTileHalves>(sums, shared, turn, shape.inner, hand_over);
    }
    StoreTile(sums, shared.staged[warp], out, piece, shape.width);
  }
  WaitForBulk();
}

template <bool transposed>
__global__ void __launch_bounds__(kThreads, 1) __cluster_dims__(kCluster, 1, 1)
    ProductsOfRunsKernel(const __grid_constant__ PartMaps x, const __grid_constant__ CUtensorMap matrices,
                         __nv_bfloat16* out, const int* ends, const __grid_constant__ Shape shape) {
  extern __shared__ unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory + (1024 - SharedAddress(memory) % 1024) % 1024);
  for (int i = static_cast<int>(threadIdx.x); i < shape.parts * shape.runs; i += kThreads) shared.ends[i] = ends[i];
  __syncthreads();
  if (threadIdx.x < 32) DivideRuns(shared, shape);
  if (threadIdx.x == 0) {
    shared.ring.PrepareBarriers();
    ShowPrepared();
  }
  __syncthreads();
  WaitForCluster();
  constexpr Along kAlong = transposed ? Along::kSummed : Along::kOwn;
  DivideWork([&] { Load<transposed>(shared, x, matrices, shape); },
             [&](int group) { Multiply<kAlong>(shared, out, group, shape); });
}

int64_t Tiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

}  // namespace

bool HopperTakes(const RunProducts& task) {
  constexpr int64_t kLimit = std::numeric_limits<int>::max() - 2 * kCluster * kTileColumns;
  const auto on_16_bytes = [](const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; };
  const int64_t pairs = Tiles(task.width, kCluster * kTileColumns), parts = task.parts * task.runs;
  return task.parts > 0 && task.runs > 0 && task.parts <= kMostParts && task.runs <= kMostParts &&
         parts <= kMostParts && task.rows > 0 && task.rows <= kLimit && task.inner > 0 && task.inner % kBox == 0 &&
         task.inner <= kLimit / task.runs && task.width > 0 && task.width % 8 == 0 &&
         task.width <= kLimit / task.runs && (Tiles(task.rows, kTileRows) + parts) * pairs <= kLimit &&
         on_16_bytes(task.out) && on_16_bytes(task.x) && on_16_bytes(task.matrices) && DeviceIsHopper();
}

cudaError_t LaunchProductsOfRuns(const RunProducts& task, cudaStream_t stream) {
  PartMaps x;
  CUtensorMap matrices;
  cudaError_t error = MapParts(&x, task.x, task.rows, task.inner);
  const auto kernel = task.transposed ? ProductsOfRunsKernel<true> : ProductsOfRunsKernel<false>;
  if (error == cudaSuccess)
    error = task.transposed ? MapBoxes(&matrices, task.matrices, task.runs * task.width, task.inner, kTileColumns)
                            : MapBoxes(&matrices, task.matrices, task.runs * task.inner, task.width);
  if (error == cudaSuccess)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  if (error != cudaSuccess) return error;

  const int64_t pairs = Tiles(task.width, kCluster * kTileColumns);
  const Shape shape = {static_cast<int>(task.parts), static_cast<int>(task.runs), static_cast<int>(task.inner),
                       static_cast<int>(task.width), static_cast<int>(pairs)};
  const int64_t processors = DeviceAttribute(cudaDevAttrMultiProcessorCount);
  const int64_t most = (Tiles(task.rows, kTileRows) + task.parts * task.runs) * pairs;  // pieces
  const int64_t clusters = std::min(std::max<int64_t>(processors / kCluster, 1), most);
  kernel<<<static_cast<unsigned>(clusters * kCluster), kThreads, kSharedBytes, stream>>>(x, matrices, task.out,
                                                                                         task.ends, shape);
  return cudaSuccess;
}

}  // namespace planwright::executor::ops
