// The gated norm and its backward (gated_norm.h). A warp has one group of channels, whose weights it keeps in
// registers, and goes from row to row. While it computes, the vectors of its next row are under way. Neighbouring warps
// have neighbouring groups of the same row.
#include <type_traits>

#include "executor/kernels/gated_norm.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kWarps = 4;  // of a thread block
constexpr int kBlock = kWarps * kWarp;
// Thread blocks that a multiprocessor holds at once, and warps of all of them on the 132 of an H200. More rows than
// these can take at a time are dealt out in turn.
constexpr int kForwardBlocks = 6, kBackwardBlocks = 3;
constexpr int64_t kForwardWarps = 132 * kForwardBlocks * kWarps, kBackwardWarps = 132 * kBackwardBlocks * kWarps;

// How many warps share the rows of a group.
int64_t WarpsOfGroup(const GatedNormShape& shape, int64_t most_warps) {
  const int64_t warps = most_warps / (shape.inner / shape.group);
  return warps < 1 ? 1 : warps < shape.rows ? warps : shape.rows;
}

// This lane's part of a group: vectors that are a warp's width apart, from `channel` on, as far as the group reaches.
struct LaneWork {
  int64_t group;    // of the row
  int64_t warp;     // among those of the group
  int64_t channel;  // of vector 0
  int64_t left;     // channels of the group from there

  __device__ __forceinline__ explicit LaneWork(const GatedNormShape& shape) {
    const int64_t warps = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
    const int64_t groups = shape.inner / shape.group, within = threadIdx.x % kWarp * kVector;
    group = warps % groups, warp = warps / groups;
    channel = group * shape.group + within, left = shape.group - within;
  }
  __device__ __forceinline__ bool Has(int vector) const { return vector * kWarp * kVector < left; }
};

// Vectors of this lane in one row after the other.
template <int kVectors, typename Vector>
struct Cursor {
  Vector* at;
  int64_t stride;  // to the next row of this warp

  template <typename Element>
  __device__ __forceinline__ Cursor(Element* data, int64_t width, const LaneWork& work, int64_t warps)
      : at(reinterpret_cast<Vector*>(data + work.warp * width + work.channel)), stride(warps * width / kVector) {}
  __device__ __forceinline__ void Load(const LaneWork& work, bool exists, uint4 (&to)[kVectors]) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) to[v] = exists && work.Has(v) ? at[v * kWarp] : uint4{0, 0, 0, 0};
    at += stride;
  }
};
template <int kVectors>
using ReadCursor = Cursor<kVectors, const uint4>;
template <int kVectors>
using WriteCursor = Cursor<kVectors, uint4>;

template <int kVectors>
__device__ __forceinline__ void LoadWeights(const __nv_bfloat16* weight, const LaneWork& work,
                                            float (&to)[kVectors][kVector]) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) to[v][i] = 0;
    if (work.Has(v)) LoadParameter(weight + work.channel + v * kWarp * kVector, to[v]);
  }
}

template <int kVectors>
__global__ void __launch_bounds__(kBlock, kForwardBlocks)
    GatedNormKernel(const __nv_bfloat16* y, const __nv_bfloat16* z, const __nv_bfloat16* weight, float eps,
                    __nv_bfloat16* yn, float* scale, GatedNormShape shape, int64_t warps) {
  const LaneWork work(shape);
  if (work.warp >= warps) return;
  const int64_t groups = shape.inner / shape.group;
  ReadCursor<kVectors> read_y(y, shape.inner, work, warps), read_z(z, shape.features, work, warps);
  WriteCursor<kVectors> write(yn, shape.inner, work, warps);
  uint4 next_y[kVectors], next_z[kVectors];
  read_y.Load(work, true, next_y);
  read_z.Load(work, true, next_z);
  float weights[kVectors][kVector];
  LoadWeights(weight, work, weights);
  for (int64_t row = work.warp; row < shape.rows; row += warps) {
    float gated[kVectors][kVector], sum = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      float z_values[kVector];
      Widen(next_y[v], gated[v]);
      Widen(next_z[v], z_values);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        gated[v][i] *= z_values[i] * Sigmoid(z_values[i]);
        sum += gated[v][i] * gated[v][i];
      }
    }
    read_y.Load(work, row + warps < shape.rows, next_y);
    read_z.Load(work, row + warps < shape.rows, next_z);
    const float factor = rsqrtf(WarpSum(sum) / static_cast<float>(shape.group) + eps);
    if (threadIdx.x % kWarp == 0) scale[row * groups + work.group] = factor;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) gated[v][i] *= factor * weights[v][i];
      if (work.Has(v)) write.at[v * kWarp] = Narrow(gated[v]);
    }
    write.at += write.stride;
  }
}

// With g = y silu(z), u = g scale and du = dyn weight: dg = (du - u mean(du u)) scale.
template <int kVectors>
__global__ void __launch_bounds__(kBlock, kBackwardBlocks)
    GatedNormGradientKernel(const __nv_bfloat16* dyn, const __nv_bfloat16* y, const __nv_bfloat16* z,
                            const float* scale, const __nv_bfloat16* weight, __nv_bfloat16* dy, __nv_bfloat16* dz,
                            float* partials, GatedNormShape shape, int64_t warps) {
  const LaneWork work(shape);
  if (work.warp >= warps) return;
  const int64_t groups = shape.inner / shape.group;
  ReadCursor<kVectors> read_dyn(dyn, shape.inner, work, warps), read_y(y, shape.inner, work, warps),
      read_z(z, shape.features, work, warps);
  WriteCursor<kVectors> write_dy(dy, shape.inner, work, warps), write_dz(dz, shape.inner, work, warps);
  uint4 next_dyn[kVectors], next_y[kVectors], next_z[kVectors];
  float next_scale;
  const auto load = [&](int64_t row) {
    const bool exists = row < shape.rows;
    read_dyn.Load(work, exists, next_dyn);
    read_y.Load(work, exists, next_y);
    read_z.Load(work, exists, next_z);
    next_scale = exists ? scale[row * groups + work.group] : 0;
  };
  load(work.warp);
  float weights[kVectors][kVector], dweights[kVectors][kVector] = {};
  LoadWeights(weight, work, weights);
  for (int64_t row = work.warp; row < shape.rows; row += warps) {
    uint4 now_dyn[kVectors], now_y[kVectors], now_z[kVectors];
    const float factor = next_scale;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) now_dyn[v] = next_dyn[v], now_y[v] = next_y[v], now_z[v] = next_z[v];
    load(row + warps);
    float sigmoids[kVectors][kVector], along = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      float dyn_values[kVector], y_values[kVector], z_values[kVector];
      Widen(now_dyn[v], dyn_values);
      Widen(now_y[v], y_values);
      Widen(now_z[v], z_values);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        sigmoids[v][i] = Sigmoid(z_values[i]);
        const float unit = y_values[i] * z_values[i] * sigmoids[v][i] * factor, term = dyn_values[i] * unit;
        dweights[v][i] += term;
        along += term * weights[v][i];
      }
    }
    along = WarpSum(along) / static_cast<float>(shape.group);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      float dyn_values[kVector], y_values[kVector], z_values[kVector];
      Widen(now_dyn[v], dyn_values);
      Widen(now_y[v], y_values);
      Widen(now_z[v], z_values);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float gate = z_values[i] * sigmoids[v][i], unit = y_values[i] * gate * factor;
        const float dgated = (dyn_values[i] * weights[v][i] - unit * along) * factor;
        dyn_values[i] = dgated * gate;
        y_values[i] *= dgated * SiluSlope(z_values[i], sigmoids[v][i]);
      }
      if (!work.Has(v)) continue;
      write_dy.at[v * kWarp] = Narrow(dyn_values);
      write_dz.at[v * kWarp] = Narrow(y_values);
    }
    write_dy.at += write_dy.stride;
    write_dz.at += write_dz.stride;
  }
  if (partials == nullptr) return;
  float* const terms = partials + work.warp * shape.inner + work.channel;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (!work.Has(v)) continue;
#pragma unroll
    for (int i = 0; i < kVector; ++i) terms[v * kWarp * kVector + i] = dweights[v][i];
  }
}

// Calls launch(vectors of a lane, thread blocks, warps of a group), the first as a constant.
template <typename Launch>
void WithLanes(const GatedNormShape& shape, int64_t most_warps, Launch launch) {
  if (shape.rows == 0 || shape.inner == 0) return;
  const int64_t warps = WarpsOfGroup(shape, most_warps), all = warps * (shape.inner / shape.group);
  const auto blocks = static_cast<unsigned>((all + kWarps - 1) / kWarps);
  if (shape.group <= kWarp * kVector) {
    launch(std::integral_constant<int, 1>(), blocks, warps);
  } else {
    launch(std::integral_constant<int, 2>(), blocks, warps);
  }
}

}  // namespace

void LaunchGatedNorm(const __nv_bfloat16* y, const __nv_bfloat16* z, const __nv_bfloat16* weight, float eps,
                     __nv_bfloat16* yn, float* scale, const GatedNormShape& shape, cudaStream_t stream) {
  WithLanes(shape, kForwardWarps, [&](auto vectors, unsigned blocks, int64_t warps) {
    GatedNormKernel<vectors()><<<blocks, kBlock, 0, stream>>>(y, z, weight, eps, yn, scale, shape, warps);
  });
}

int64_t GatedNormPartials(const GatedNormShape& shape) {
  return shape.inner == 0 ? 0 : WarpsOfGroup(shape, kBackwardWarps);
}

void LaunchGatedNormGradient(const __nv_bfloat16* dyn, const __nv_bfloat16* y, const __nv_bfloat16* z,
                             const float* scale, const __nv_bfloat16* weight, __nv_bfloat16* dy, __nv_bfloat16* dz,
                             float* partials, const GatedNormShape& shape, cudaStream_t stream) {
  WithLanes(shape, kBackwardWarps, [&](auto vectors, unsigned blocks, int64_t warps) {
    GatedNormGradientKernel<vectors()>
        <<<blocks, kBlock, 0, stream>>>(dyn, y, z, scale, weight, dy, dz, partials, shape, warps);
  });
}

}  // namespace planwright::executor::ops
