// What the kernels of attention share (executor/kernels/attention.h): tiles of one head in shared memory, how they come
// and go, and their products on tensor cores. Compiled for sm_90a alone.
//
// 80 is no multiple of the 64 elements over which the other kernels swizzle. So a tile lies in slices of 16 columns,
// each contiguous, with 32 bytes a row and swizzled over 32 bytes. Tensor cores read it at full rate with either index
// as the summed one, and nothing is padded. `columns`: of a head.
#pragma once

#include <algorithm>
#include <type_traits>

#include "executor/kernels/attention.h"
#include "executor/kernels/hopper.cuh"

namespace planwright::executor::ops {

constexpr int kSliceColumns = 16, kSliceRowBytes = kSliceColumns * 2;
template <int columns>
inline constexpr int kSlices = columns / kSliceColumns;
// A warpgroup multiplies 64 rows at a time. Sums that a thread has of 64 rows of a head.
constexpr int kGroupRows = 64;
template <int columns>
inline constexpr int kEachOfHead = kGroupRows* columns / kWarpgroup;

// Of a tile of so many rows.
template <int rows>
inline constexpr int kSliceBytes = rows* kSliceRowBytes;
template <int columns, int rows>
inline constexpr int kHeadBytes = kSlices<columns>* kSliceBytes<rows>;

// Runs of a launch. Each has its tensor maps in the parameters of the kernel. Most launches have one run, for which
// kernels are compiled apart.
constexpr int kRunsAtOnce = 16;

// log2(e)
constexpr double kLog2E = 1.4426950408889634;

// ---- Loads and stores ----

// Coordinates of a tile: its first row in its sequence, head, and sequence of its run. Rows behind the sequence's end
// are loaded as 0 and not stored.
struct TileAt {
  int row, head, sequence;
};

template <int columns>
__device__ void LoadTile(unsigned char* to, const CUtensorMap& map, TileAt at, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}],"
      " [%6];" ::"r"(SharedAddress(to)),
      "l"(&map), "r"(0), "r"(at.row), "r"(at.head * kSlices<columns>), "r"(at.sequence), "r"(SharedAddress(barrier))
      : "memory");
}

// One of a bulk group of this thread.
template <int columns>
__device__ void StoreTile(const CUtensorMap& map, const unsigned char* from, TileAt at) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(&map),
               "r"(0), "r"(at.row), "r"(at.head * kSlices<columns>), "r"(at.sequence), "r"(SharedAddress(from))
               : "memory");
}

// At a barrier of this block.
__device__ inline void Arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(barrier)) : "memory");
}

// Two numbers as bf16, the first in the low half.
__device__ inline uint32_t Pack(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// Four 8 x 8 matrices from registers to shared memory. Lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i.
__device__ inline void StoreMatrices(uint32_t address, const uint32_t (&packed)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(packed[0]),
               "r"(packed[1]), "r"(packed[2]), "r"(packed[3])
               : "memory");
}

// The sums of a warpgroup, its rows times two factors, into a tile of 64 rows. A thread has rows r and r + 8 of its
// warp's 16, r = lane / 4; the factors are theirs.
template <int each>
__device__ void RoundToTile(const float (&sums)[each], float first, float second, unsigned char* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const int row = warp * 16 + lane % 16, half = lane / 16;
  const uint32_t address = SharedAddress(tile) + row * kSliceRowBytes + ((half ^ (row / 4 % 2)) << 4);
#pragma unroll
  for (int slice = 0; slice < each / 8; ++slice) {
    const float* s = sums + 8 * slice;
    StoreMatrices(address + slice * kSliceBytes<kGroupRows>,
                  {Pack(s[0] * first, s[1] * first), Pack(s[2] * second, s[3] * second),
                   Pack(s[4] * first, s[5] * first), Pack(s[6] * second, s[7] * second)});
  }
}

// ---- Products ----

// Describes a slice to the tensor cores, with the summed index along its rows' 16 columns. The fields are those of
// Described (executor/kernels/hopper.cuh): 8 rows of 32 bytes follow each other; 3 in the two highest bits: swizzled
// over 32 bytes.
__device__ inline uint64_t ColumnsSummed(uint32_t slice) {
  return uint64_t{3} << 62 | uint64_t{kSliceBytes<8> >> 4} << 32 | uint64_t{1} << 16 | slice >> 4;
}

// Describes 16 rows of all slices of a tile of `rows` rows. The summed index goes along these rows.
template <int rows>
__device__ uint64_t RowsSummed(uint32_t first) {
  return uint64_t{3} << 62 | uint64_t{kSliceBytes<8> >> 4} << 32 | uint64_t{kSliceBytes<rows> >> 4} << 16 | first >> 4;
}

#define NAMES_32                                                                                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, " \
  "%23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_40 NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define NAMES_56 NAMES_40 ", %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55"
#define SUMS_8(how, i)                                                                                               \
  how(sum[i]), how(sum[i + 1]), how(sum[i + 2]), how(sum[i + 3]), how(sum[i + 4]), how(sum[i + 5]), how(sum[i + 6]), \
      how(sum[i + 7])
#define SUMS_32(how) SUMS_8(how, 0), SUMS_8(how, 8), SUMS_8(how, 16), SUMS_8(how, 24)
#define SUMS_40(how) SUMS_32(how), SUMS_8(how, 32)
#define SUMS_56(how) SUMS_40(how), SUMS_8(how, 40), SUMS_8(how, 48)

// 64 rows times `width` columns, 16 of the summed index. `factors` names them, and says of those in shared memory
// whether they lie along their own index. The first product of a sum does not read it: so nothing has to clear it.
#define ADD_PRODUCT(width, names, sums, factors, ...)                                               \
  asm volatile(                                                                                     \
      "{\n.reg .pred adds;\nsetp.eq.u32 adds, 0, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32.bf16.bf16 {" names "}, " factors ";\n}\n" \
      : sums("+f")                                                                                  \
      : __VA_ARGS__)
#define FIRST_PRODUCT(width, names, sums, factors, ...)                                             \
  asm volatile(                                                                                     \
      "{\n.reg .pred adds;\nsetp.ne.u32 adds, 0, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32.bf16.bf16 {" names "}, " factors ";\n}\n" \
      : sums("=f")                                                                                  \
      : __VA_ARGS__)

// Scores: both factors with the summed index along rows. The sums have the layout of AddProduct
// (executor/kernels/hopper.cuh).
__device__ inline void FirstScores(float (&sum)[56], uint64_t a, uint64_t b) {
  FIRST_PRODUCT(112, NAMES_56, SUMS_56, "%56, %57, adds, 1, 1, 0, 0", "l"(a), "l"(b));
}
__device__ inline void AddScores(float (&sum)[56], uint64_t a, uint64_t b) {
  ADD_PRODUCT(112, NAMES_56, SUMS_56, "%56, %57, adds, 1, 1, 0, 0", "l"(a), "l"(b));
}
__device__ inline void FirstScores(float (&sum)[32], uint64_t a, uint64_t b) {
  FIRST_PRODUCT(64, NAMES_32, SUMS_32, "%32, %33, adds, 1, 1, 0, 0", "l"(a), "l"(b));
}
__device__ inline void AddScores(float (&sum)[32], uint64_t a, uint64_t b) {
  ADD_PRODUCT(64, NAMES_32, SUMS_32, "%32, %33, adds, 1, 1, 0, 0", "l"(a), "l"(b));
}

// sum += weights times rows of a head. The weights are in registers: of a thread's sums, eight in a row, packed.
__device__ inline void AddWeighted(float (&sum)[32], const uint32_t* weights, uint64_t rows) {
  ADD_PRODUCT(64, NAMES_32, SUMS_32, "{%32, %33, %34, %35}, %36, adds, 1, 1, 1", "r"(weights[0]), "r"(weights[1]),
              "r"(weights[2]), "r"(weights[3]), "l"(rows));
}
__device__ inline void AddWeighted(float (&sum)[40], const uint32_t* weights, uint64_t rows) {
  ADD_PRODUCT(80, NAMES_40, SUMS_40, "{%40, %41, %42, %43}, %44, adds, 1, 1, 1", "r"(weights[0]), "r"(weights[1]),
              "r"(weights[2]), "r"(weights[3]), "l"(rows));
}

// The same with weights in shared memory, which lie along their own index.
__device__ inline void FirstWeighted(float (&sum)[32], uint64_t weights, uint64_t rows) {
  FIRST_PRODUCT(64, NAMES_32, SUMS_32, "%32, %33, adds, 1, 1, 1, 1", "l"(weights), "l"(rows));
}
__device__ inline void AddWeighted(float (&sum)[32], uint64_t weights, uint64_t rows) {
  ADD_PRODUCT(64, NAMES_32, SUMS_32, "%32, %33, adds, 1, 1, 1, 1", "l"(weights), "l"(rows));
}
__device__ inline void FirstWeighted(float (&sum)[40], uint64_t weights, uint64_t rows) {
  FIRST_PRODUCT(80, NAMES_40, SUMS_40, "%40, %41, adds, 1, 1, 1, 1", "l"(weights), "l"(rows));
}
__device__ inline void AddWeighted(float (&sum)[40], uint64_t weights, uint64_t rows) {
  ADD_PRODUCT(80, NAMES_40, SUMS_40, "%40, %41, adds, 1, 1, 1, 1", "l"(weights), "l"(rows));
}

#undef ADD_PRODUCT
#undef FIRST_PRODUCT
#undef SUMS_56
#undef SUMS_40
#undef SUMS_32
#undef SUMS_8
#undef NAMES_56
#undef NAMES_40
#undef NAMES_32

// Starts the products of a warpgroup's 64 rows with all rows of a tile, over the head's columns.
template <int columns, int each>
__device__ void StartScores(float (&sum)[each], uint32_t rows, uint32_t tile) {
  constexpr int kOfTile = kSliceBytes<each * kWarpgroup / kGroupRows>;
  FirstScores(sum, ColumnsSummed(rows), ColumnsSummed(tile));
#pragma unroll
  for (int slice = 1; slice < kSlices<columns>; ++slice)
    AddScores(sum, ColumnsSummed(rows + slice * kSliceBytes<kGroupRows>), ColumnsSummed(tile + slice * kOfTile));
}

// Starts the products of weights in registers with all rows of a tile.
template <int rows, int each>
__device__ void StartWeighted(float (&sum)[each], const uint32_t (&weights)[rows / 4], uint32_t tile) {
#pragma unroll
  for (int i = 0; i < rows / kProductDepth; ++i)
    AddWeighted(sum, weights + 4 * i, RowsSummed<rows>(tile + i * kSliceBytes<kProductDepth>));
}

// The sums are the products' until these are waited for. Keeps the compiler from moving a use of them up, and a change
// of them down behind the start of the products.
template <int each>
__device__ void Hold(float (&sum)[each]) {
#pragma unroll
  for (int i = 0; i < each; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

__device__ inline float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---- On the host ----

// Tiles of `box_rows` rows of one head, in the rows of a run. `matrix` is the first of them, `stride` elements before
// the next.
template <int columns>
cudaError_t MapTiles(CUtensorMap* map, const __nv_bfloat16* matrix, const EqualSequences& run, int64_t heads,
                     int64_t stride, int box_rows) {
  const auto encode = MapEncoder();
  if (encode == nullptr) return cudaErrorNotSupported;
  const auto bytes = [](int64_t elements) { return static_cast<cuuint64_t>(elements) * sizeof(__nv_bfloat16); };
  const cuuint64_t sizes[] = {kSliceColumns, static_cast<cuuint64_t>(run.length),
                              static_cast<cuuint64_t>(heads) * kSlices<columns>,
                              static_cast<cuuint64_t>(run.sequences)};
  const cuuint64_t strides[] = {bytes(stride), bytes(kSliceColumns), bytes(run.length * stride)};
  const cuuint32_t box[] = {kSliceColumns, static_cast<cuuint32_t>(box_rows), kSlices<columns>, 1},
                   steps[] = {1, 1, 1, 1};
  const CUresult result = encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<__nv_bfloat16*>(matrix), sizes,
                                 strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_32B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

inline int Blocks(int64_t rows, int64_t each) { return static_cast<int>((rows + each - 1) / each); }

// Rows of the runs before `run`.
inline int64_t FirstRow(const Attention& x, int run) {
  int64_t rows = 0;
  for (int i = 0; i < run; ++i) rows += x.runs[i].rows();
  return rows;
}

// Runs from `first` to before `end`, those of the longest sequences first: their thread blocks run longest, so none of
// them begins when all others are about to end.
inline std::vector<int> LongestFirst(const Attention& x, int first, int end) {
  std::vector<int> order;
  for (int i = first; i < end; ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x.runs[a].length > x.runs[b].length; });
  return order;
}

template <int number>
using Number = std::integral_constant<int, number>;

// Calls `launch(columns, most, first, end)` for all runs of x, as many at a time as one call takes: `most` is 1 or
// kRunsAtOnce, as a type like `columns`; `end` is the first run behind those of the call. Ends with the first error.
template <typename LaunchRuns>
cudaError_t ForRunsAtOnce(const Attention& x, const LaunchRuns& launch) {
  const auto for_heads = [&](auto columns) {
    const auto runs = static_cast<int>(x.runs.size());
    if (runs == 1) return launch(columns, Number<1>(), 0, 1);
    cudaError_t error = cudaSuccess;
    for (int first = 0; first < runs && error == cudaSuccess; first += kRunsAtOnce)
      error = launch(columns, Number<kRunsAtOnce>(), first, std::min(runs, first + kRunsAtOnce));
    return error;
  };
  return x.head_dim == 64 ? for_heads(Number<64>()) : for_heads(Number<80>());
}

}  // namespace planwright::executor::ops
