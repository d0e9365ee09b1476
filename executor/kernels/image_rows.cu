// Patches by their places (image_rows.h). Weights of positions are quotients of small integers, which fp64 has to the
// last bit: a patch that lies on a cell of the table is that cell.
#include "executor/kernels/image_rows.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kPlaceThreads = 256, kMostThreads = 256;
constexpr int kPatches = 4;  // of a thread block that adds positions
constexpr int kTaps = 4;

// The image that has this patch: the last one that begins at it or before.
__device__ const PlacedImage& ImageOf(const PlacedImages& images, int64_t patch) {
  int64_t low = 0, high = images.count;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (images.of[middle].first_patch <= patch ? low : high) = middle;
  }
  return images.of[low];
}

struct Place {
  int row, column;
};

__device__ Place PlaceIn(const PlacedImage& image, int64_t patch) {
  const auto index = static_cast<unsigned>(patch - image.first_patch), columns = static_cast<unsigned>(image.columns);
  return {static_cast<int>(image.first_row) + static_cast<int>(index / columns), static_cast<int>(index % columns)};
}

__global__ void __launch_bounds__(kPlaceThreads) PatchPlacesKernel(PlacedImages images, int64_t* places) {
  const int64_t patch = int64_t{blockIdx.x} * kPlaceThreads + threadIdx.x;
  if (patch >= images.patches) return;
  const Place place = PlaceIn(ImageOf(images, patch), patch);
  places[patch] = place.row, places[images.patches + patch] = place.column;
}

// Along one direction: cell `i` of `count` is a sum of two neighbours of the table.
struct AxisTap {
  int low, high;
  double fraction;  // of the high one

  __device__ AxisTap(int i, int count, int side) {
    const int steps = count > 1 ? count - 1 : 1, along = i * (side - 1);
    low = along / steps, high = low + 1 < side ? low + 1 : side - 1;
    fraction = static_cast<double>(along % steps) / steps;
  }
  // What it takes of a row or column of the table.
  __device__ double WeightOf(int cell) const {
    return (low == cell ? 1 - fraction : 0) + (high == cell ? fraction : 0);
  }
};

__global__ void __launch_bounds__(kMostThreads)
    AddPositionsKernel(PlacedImages images, PositionTable table, const uint4* e, const uint4* rows, uint4* x) {
  __shared__ int taps[kPatches][kTaps];
  __shared__ float weights[kPatches][kTaps];
  const int64_t first = int64_t{blockIdx.x} * kPatches;
  const int own = static_cast<int>(threadIdx.x);
  if (own < kPatches && first + own < images.patches) {
    const PlacedImage& image = ImageOf(images, first + own);
    const Place place = PlaceIn(image, first + own);
    const auto side = static_cast<int>(table.side);
    const AxisTap y(place.row, static_cast<int>(image.all_rows), side);
    const AxisTap z(place.column, static_cast<int>(image.columns), side);
    const auto set = [&](int tap, int row, int column, double weight) {
      taps[own][tap] = row * side + column, weights[own][tap] = static_cast<float>(weight);
    };
    set(0, y.low, z.low, (1 - y.fraction) * (1 - z.fraction));
    set(1, y.low, z.high, (1 - y.fraction) * z.fraction);
    set(2, y.high, z.low, y.fraction * (1 - z.fraction));
    set(3, y.high, z.high, y.fraction * z.fraction);
  }
  __syncthreads();
  const auto vectors = static_cast<int>(table.width / kVector);
  for (int vector = own; vector < vectors; vector += static_cast<int>(blockDim.x)) {
#pragma unroll
    for (int p = 0; p < kPatches; ++p) {
      if (first + p >= images.patches) break;
      float sum[kVector] = {}, values[kVector];
#pragma unroll
      for (int tap = 0; tap < kTaps; ++tap) {
        Widen(rows[int64_t{taps[p][tap]} * vectors + vector], values);
#pragma unroll
        for (int i = 0; i < kVector; ++i) sum[i] += values[i] * weights[p][tap];
      }
      const int64_t at = (first + p) * vectors + vector;
      float rounded[kVector];
      Widen(Narrow(sum), rounded);
      Widen(e[at], values);
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[i] += rounded[i];
      x[at] = Narrow(values);
    }
  }
}

struct Range {
  int first, end;
};

// The cells of `count` that may take something of row or column `cell` of the table: those less than one of the
// table's steps away.
__device__ Range CellsNear(int cell, int count, int side) {
  if (side == 1) return {0, count};
  const int steps = count > 1 ? count - 1 : 1;
  const int first = cell > 0 ? (cell - 1) * steps / (side - 1) : 0, last = (cell + 1) * steps / (side - 1);
  return {first, last + 1 < count ? last + 1 : count};
}

constexpr int kColumns = 4;         // of patches that are loaded at once: most cells take something of three or four
constexpr int kGradientBlocks = 3;  // of a multiprocessor, at least

// A thread block has a row of the table.
__global__ void __launch_bounds__(kMostThreads, kGradientBlocks)
    AddPositionsGradientKernel(PlacedImages images, PositionTable table, const uint4* dx, float4* gradient) {
  const auto side = static_cast<int>(table.side), vectors = static_cast<int>(table.width / kVector);
  const int cell_row = static_cast<int>(blockIdx.x) / side, cell_column = static_cast<int>(blockIdx.x) % side;
  for (int vector = static_cast<int>(threadIdx.x); vector < vectors; vector += static_cast<int>(blockDim.x)) {
    float sum[kVector] = {};
    for (int64_t i = 0; i < images.count; ++i) {
      const PlacedImage image = images.of[i];
      const auto all_rows = static_cast<int>(image.all_rows), columns = static_cast<int>(image.columns),
                 here = static_cast<int>(image.first_row), behind = here + static_cast<int>(image.rows);
      Range rows = CellsNear(cell_row, all_rows, side);
      const Range near = CellsNear(cell_column, columns, side);
      rows = {rows.first > here ? rows.first : here, rows.end < behind ? rows.end : behind};
      for (int row = rows.first; row < rows.end; ++row) {
        const double of_row = AxisTap(row, all_rows, side).WeightOf(cell_row);
        if (of_row == 0) continue;
        const uint4* patches = dx + (image.first_patch + int64_t{row - here} * columns) * vectors + vector;
        for (int first = near.first; first < near.end; first += kColumns) {
          float weights[kColumns];
          uint4 loaded[kColumns];
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            const int column = first + c;
            weights[c] = column < near.end
                             ? static_cast<float>(of_row * AxisTap(column, columns, side).WeightOf(cell_column))
                             : 0;
            loaded[c] = weights[c] == 0 ? uint4{} : patches[int64_t{column} * vectors];
          }
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            float values[kVector];
            Widen(loaded[c], values);
#pragma unroll
            for (int k = 0; k < kVector; ++k) sum[k] += values[k] * weights[c];
          }
        }
      }
    }
    float4* to = gradient + (int64_t{blockIdx.x} * vectors + vector) * 2;
    float4 low = to[0], high = to[1];
    low.x += sum[0], low.y += sum[1], low.z += sum[2], low.w += sum[3];
    high.x += sum[4], high.y += sum[5], high.z += sum[6], high.w += sum[7];
    to[0] = low, to[1] = high;
  }
}

int ThreadsOf(const PositionTable& table) {
  const int64_t threads = (table.width / kVector + kWarp - 1) / kWarp * kWarp;
  return static_cast<int>(threads < kMostThreads ? threads : kMostThreads);
}

unsigned BlocksOf(int64_t count, int64_t of_each) { return static_cast<unsigned>((count + of_each - 1) / of_each); }

}  // namespace

void LaunchPatchPlaces(const PlacedImages& images, int64_t* places, cudaStream_t stream) {
  if (images.patches == 0) return;
  PatchPlacesKernel<<<BlocksOf(images.patches, kPlaceThreads), kPlaceThreads, 0, stream>>>(images, places);
}

void LaunchAddPositions(const PlacedImages& images, const PositionTable& table, const __nv_bfloat16* e,
                        const __nv_bfloat16* rows, __nv_bfloat16* x, cudaStream_t stream) {
  if (images.patches == 0 || table.width == 0) return;
  AddPositionsKernel<<<BlocksOf(images.patches, kPatches), ThreadsOf(table), 0, stream>>>(
      images, table, reinterpret_cast<const uint4*>(e), reinterpret_cast<const uint4*>(rows),
      reinterpret_cast<uint4*>(x));
}

void LaunchAddPositionsGradient(const PlacedImages& images, const PositionTable& table, const __nv_bfloat16* dx,
                                float* gradient, cudaStream_t stream) {
  if (images.patches == 0 || table.width == 0) return;
  AddPositionsGradientKernel<<<static_cast<unsigned>(table.side * table.side), ThreadsOf(table), 0, stream>>>(
      images, table, reinterpret_cast<const uint4*>(dx), reinterpret_cast<float4*>(gradient));
}

}  // namespace planwright::executor::ops
