// The activation of the routed experts (executor/kernels/expert_activation.h). One warp works on a row, 16 bytes at a
// time and lane, so its sum needs no other warp.
#include "executor/kernels/expert_activation.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kRowWarps = 8;
constexpr int kForwardAtOnce = 4, kBackwardAtOnce = 2;  // vectors that a lane has on their way, of each operand

// Keeps what is not a number, as LibTorch's relu does: a broken run must show.
__device__ __forceinline__ float Positive(float x) { return x < 0 ? 0.0f : x; }

__global__ void __launch_bounds__(kRowWarps* kWarp)
    ExpertActivationKernel(const uint4* pre, const float* weights, int64_t rows, int vectors, uint4* act) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.x / kWarp;
  if (row >= rows) return;
  pre += row * vectors, act += row * vectors;
  const float weight = weights[row];
  for (int first = static_cast<int>(threadIdx.x) % kWarp; first < vectors; first += kForwardAtOnce * kWarp) {
    uint4 values[kForwardAtOnce];
#pragma unroll
    for (int i = 0; i < kForwardAtOnce; ++i) {
      if (first + i * kWarp < vectors) values[i] = pre[first + i * kWarp];
    }
#pragma unroll
    for (int i = 0; i < kForwardAtOnce; ++i) {
      if (first + i * kWarp >= vectors) break;
      float x[8];
      Widen(values[i], x);
#pragma unroll
      for (int n = 0; n < 8; ++n) x[n] = Positive(x[n]) * Positive(x[n]) * weight;
      act[first + i * kWarp] = Narrow(x);
    }
  }
}

template <bool kMakesAct>
__global__ void __launch_bounds__(kRowWarps* kWarp)
    ExpertActivationGradKernel(uint4* gradient, const uint4* pre, const float* weights, int64_t rows, int vectors,
                               float* dweights, uint4* act) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.x / kWarp;
  if (row >= rows) return;
  gradient += row * vectors, pre += row * vectors;
  if (kMakesAct) act += row * vectors;
  const float weight = weights[row];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float sum = 0;
  for (int first = lane; first < vectors; first += kBackwardAtOnce * kWarp) {
    uint4 given[kBackwardAtOnce], before[kBackwardAtOnce];
#pragma unroll
    for (int i = 0; i < kBackwardAtOnce; ++i) {
      const int index = first + i * kWarp;
      if (index < vectors) given[i] = gradient[index], before[i] = pre[index];
    }
#pragma unroll
    for (int i = 0; i < kBackwardAtOnce; ++i) {
      const int index = first + i * kWarp;
      if (index >= vectors) break;
      float d[8], x[8];
      Widen(given[i], d);
      Widen(before[i], x);
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const float positive = Positive(x[n]), squared = positive * positive;
        sum += d[n] * squared;
        d[n] = d[n] * positive * weight * 2.0f;
        x[n] = squared * weight;
      }
      gradient[index] = Narrow(d);
      if (kMakesAct) act[index] = Narrow(x);
    }
  }
  sum = WarpSum(sum);
  if (lane == 0) dweights[row] = sum;
}

unsigned BlocksOfRows(int64_t rows) { return static_cast<unsigned>((rows + kRowWarps - 1) / kRowWarps); }

}  // namespace

void LaunchExpertActivation(const __nv_bfloat16* pre, const float* weights, int64_t rows, int64_t width,
                            __nv_bfloat16* act, cudaStream_t stream) {
  if (rows == 0 || width == 0) return;
  ExpertActivationKernel<<<BlocksOfRows(rows), kRowWarps * kWarp, 0, stream>>>(
      reinterpret_cast<const uint4*>(pre), weights, rows, static_cast<int>(width / 8), reinterpret_cast<uint4*>(act));
}

void LaunchExpertActivationGrad(__nv_bfloat16* gradient, const __nv_bfloat16* pre, const float* weights, int64_t rows,
                                int64_t width, float* dweights, __nv_bfloat16* act, cudaStream_t stream) {
  if (rows == 0) return;
  const auto kernel = act != nullptr ? ExpertActivationGradKernel<true> : ExpertActivationGradKernel<false>;
  kernel<<<BlocksOfRows(rows), kRowWarps * kWarp, 0, stream>>>(
      reinterpret_cast<uint4*>(gradient), reinterpret_cast<const uint4*>(pre), weights, rows,
      static_cast<int>(width / 8), dweights, reinterpret_cast<uint4*>(act));
}

}  // namespace planwright::executor::ops
