// Grouped matrix products in tiles (executor/ops/fast/grouped_product.h says what they are for).
#include <type_traits>

#include "executor/kernels/grouped_product.h"

namespace planwright::executor::ops {
namespace {

// A thread block computes a tile of 64 x 64 elements with 16 x 16 threads. Each thread has 4 x 4 elements, 16 apart, so
// that neighbouring threads write neighbouring elements. Both factors pass through shared memory, 16 of the summed
// index at a time.
constexpr int kTile = 64, kDepth = 16, kSide = 16, kThreads = kSide * kSide, kEach = kTile / kSide;

template <typename T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

__device__ float Widened(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ float Widened(float value) { return value; }
__device__ double Widened(double value) { return value; }

template <typename T>
struct Tiles {
  T a[kDepth][kTile + 1], b[kDepth][kTile + 1];
};

template <typename T>
__device__ void AddTiles(const Tiles<T>& tiles, T (&sum)[kEach][kEach]) {
  const int row = static_cast<int>(threadIdx.x) / kSide, column = static_cast<int>(threadIdx.x) % kSide;
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    T a[kEach], b[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) a[i] = tiles.a[k][row + i * kSide], b[i] = tiles.b[k][column + i * kSide];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) sum[i][j] += a[i] * b[j];
    }
  }
}

// Calls element(i, j, row, column) for each of this thread's elements: sum[i][j] belongs to (row, column) of the tile.
template <typename Element>
__device__ void EachElement(Element element) {
  const int row = static_cast<int>(threadIdx.x) / kSide, column = static_cast<int>(threadIdx.x) % kSide;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) element(i, j, row + i * kSide, column + j * kSide);
  }
}

// blockIdx.x counts tiles of rows, run after run. How many tiles each run has is known only on the device, so the host
// launches the largest possible number, and the last blocks may have nothing to do.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    GroupedProductKernel(const T* x, const T* matrices, MatrixStrides strides, T* out, GroupedShape shape) {
  int64_t tile = blockIdx.x, first = 0, end = 0, run = 0;
  for (; run < shape.runs; ++run) {
    end = shape.ends[run];
    const int64_t tiles = (end - first + kTile - 1) / kTile;
    if (tile < tiles) break;
    tile -= tiles, first = end;
  }
  if (run == shape.runs) return;
  first += tile * kTile;
  const int64_t across = static_cast<int64_t>(blockIdx.y) * kTile;
  const T* matrix = matrices + run * strides.run;

  using Sum = SumOf<T>;
  __shared__ Tiles<Sum> tiles;
  Sum sum[kEach][kEach] = {};
  for (int64_t depth = 0; depth < shape.inner; depth += kDepth) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kThreads) {
      const int64_t row = first + i / kDepth, k = depth + i % kDepth;
      tiles.a[i % kDepth][i / kDepth] = row < end && k < shape.inner ? Widened(x[row * shape.inner + k]) : Sum(0);
      // Neighbouring threads read neighbouring elements, whether the matrix is stored by rows or transposed.
      const bool along_width = strides.width == 1;
      const int at = along_width ? i % kTile : i / kDepth, deep = along_width ? i / kTile : i % kDepth;
      const int64_t column = across + at, inner = depth + deep;
      tiles.b[deep][at] = column < shape.width && inner < shape.inner
                              ? Widened(matrix[inner * strides.inner + column * strides.width])
                              : Sum(0);
    }
    __syncthreads();
    AddTiles(tiles, sum);
    __syncthreads();
  }
  EachElement([&](int i, int j, int row, int column) {
    if (first + row < end && across + column < shape.width)
      out[(first + row) * shape.width + across + column] = T(sum[i][j]);
  });
}

// One block for each tile of each run's matrix. It walks through all rows of the run, so the sum is in the order of
// rows.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    GroupedOuterProductsKernel(SumOf<T>* sums, const T* a, const T* b, GroupedShape shape) {
  const int64_t run = blockIdx.z, begin = run == 0 ? 0 : shape.ends[run - 1], end = shape.ends[run];
  if (begin == end) return;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile, across = static_cast<int64_t>(blockIdx.y) * kTile;

  using Sum = SumOf<T>;
  __shared__ Tiles<Sum> tiles;
  Sum sum[kEach][kEach] = {};
  for (int64_t depth = begin; depth < end; depth += kDepth) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kThreads) {
      const int64_t row = depth + i / kTile, left = first + i % kTile, right = across + i % kTile;
      tiles.a[i / kTile][i % kTile] = row < end && left < shape.inner ? Widened(a[row * shape.inner + left]) : Sum(0);
      tiles.b[i / kTile][i % kTile] = row < end && right < shape.width ? Widened(b[row * shape.width + right]) : Sum(0);
    }
    __syncthreads();
    AddTiles(tiles, sum);
    __syncthreads();
  }
  Sum* matrix = sums + run * shape.inner * shape.width;
  EachElement([&](int i, int j, int row, int column) {
    if (first + row < shape.inner && across + column < shape.width)
      matrix[(first + row) * shape.width + across + column] += sum[i][j];
  });
}

unsigned Blocks(int64_t count) { return static_cast<unsigned>((count + kTile - 1) / kTile); }

}  // namespace

template <typename T>
void LaunchGroupedProduct(const T* x, const T* matrices, MatrixStrides strides, T* out, GroupedShape shape,
                          cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>(shape.rows / kTile + shape.runs), Blocks(shape.width));
  GroupedProductKernel<<<blocks, kThreads, 0, stream>>>(x, matrices, strides, out, shape);
}

template <typename Sum, typename T>
void LaunchGroupedOuterProducts(Sum* sums, const T* a, const T* b, GroupedShape shape, cudaStream_t stream) {
  static_assert(std::is_same_v<Sum, SumOf<T>>);
  const dim3 blocks(Blocks(shape.inner), Blocks(shape.width), static_cast<unsigned>(shape.runs));
  GroupedOuterProductsKernel<<<blocks, kThreads, 0, stream>>>(sums, a, b, shape);
}

template void LaunchGroupedProduct(const float*, const float*, MatrixStrides, float*, GroupedShape, cudaStream_t);
template void LaunchGroupedProduct(const __nv_bfloat16*, const __nv_bfloat16*, MatrixStrides, __nv_bfloat16*,
                                   GroupedShape, cudaStream_t);
template void LaunchGroupedProduct(const double*, const double*, MatrixStrides, double*, GroupedShape, cudaStream_t);
template void LaunchGroupedOuterProducts(float*, const float*, const float*, GroupedShape, cudaStream_t);
template void LaunchGroupedOuterProducts(float*, const __nv_bfloat16*, const __nv_bfloat16*, GroupedShape,
                                         cudaStream_t);
template void LaunchGroupedOuterProducts(double*, const double*, const double*, GroupedShape, cudaStream_t);

}  // namespace planwright::executor::ops
