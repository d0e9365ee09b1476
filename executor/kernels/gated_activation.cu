// The gated activation and its backward (gated_activation.h). Without sums over a row a thread block has a part of a
// row, two vectors of 8 features in each thread. With them a warp has a row, so that its sum needs no other warp.
#include "executor/kernels/gated_activation.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kMostThreads = 128, kEach = 2;  // of a part of a row
constexpr int kRowWarps = 8;

__device__ __forceinline__ float Silu(float x) { return x * Sigmoid(x); }

// This thread's vectors of a row, of which a block has kEach * blockDim.x.
struct RowPart {
  int64_t row;
  int first, vectors;

  __device__ __forceinline__ explicit RowPart(int vectors_of_row)
      : row(blockIdx.x), first(static_cast<int>(blockIdx.y * blockDim.x * kEach + threadIdx.x)),
        vectors(vectors_of_row) {}
  __device__ __forceinline__ int At(int each) const { return first + each * static_cast<int>(blockDim.x); }
  __device__ __forceinline__ bool Has(int each) const { return At(each) < vectors; }
};

__global__ void __launch_bounds__(kMostThreads)
    GatedActivationKernel(const uint4* gate_up, const float* weights, int vectors, uint4* act) {
  const RowPart part(vectors);
  const uint4 *gates = gate_up + part.row * 2 * vectors, *rests = gates + vectors;
  uint4 gate[kEach], rest[kEach];
#pragma unroll
  for (int each = 0; each < kEach; ++each) {
    if (part.Has(each)) gate[each] = gates[part.At(each)], rest[each] = rests[part.At(each)];
  }
  const float weight = weights == nullptr ? 1.0f : weights[part.row];
#pragma unroll
  for (int each = 0; each < kEach; ++each) {
    if (!part.Has(each)) break;
    float x[kVector], up[kVector];
    Widen(gate[each], x);
    Widen(rest[each], up);
#pragma unroll
    for (int i = 0; i < kVector; ++i) x[i] = Silu(x[i]) * up[i] * weight;
    act[part.row * vectors + part.At(each)] = Narrow(x);
  }
}

__global__ void __launch_bounds__(kMostThreads)
    GatedActivationGradientKernel(const uint4* dact, const uint4* gate_up, int vectors, uint4* dgate_up) {
  const RowPart part(vectors);
  const int64_t row = part.row * vectors;
  uint4 given[kEach], gate[kEach], rest[kEach];
#pragma unroll
  for (int each = 0; each < kEach; ++each) {
    if (!part.Has(each)) break;
    given[each] = dact[row + part.At(each)];
    gate[each] = gate_up[2 * row + part.At(each)], rest[each] = gate_up[2 * row + vectors + part.At(each)];
  }
#pragma unroll
  for (int each = 0; each < kEach; ++each) {
    if (!part.Has(each)) break;
    float d[kVector], x[kVector], up[kVector];
    Widen(given[each], d);
    Widen(gate[each], x);
    Widen(rest[each], up);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const float sigmoid = Sigmoid(x[i]);
      up[i] *= d[i] * SiluSlope(x[i], sigmoid);  // of the gate
      d[i] *= x[i] * sigmoid;                    // of the rest
    }
    dgate_up[2 * row + part.At(each)] = Narrow(up);
    dgate_up[2 * row + vectors + part.At(each)] = Narrow(d);
  }
}

__global__ void __launch_bounds__(kRowWarps* kWarp)
    WeightedGradientKernel(uint4* dact, const uint4* gate_up, const float* weights, int64_t rows, int vectors,
                           uint4* dgate_up, float* dweights) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.x / kWarp;
  if (row >= rows) return;
  dact += row * vectors, gate_up += 2 * row * vectors, dgate_up += 2 * row * vectors;
  const float weight = weights[row];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float sum = 0;
  for (int first = lane; first < vectors; first += kEach * kWarp) {
    uint4 given[kEach], gate[kEach], rest[kEach];
#pragma unroll
    for (int each = 0; each < kEach; ++each) {
      const int at = first + each * kWarp;
      if (at < vectors) given[each] = dact[at], gate[each] = gate_up[at], rest[each] = gate_up[vectors + at];
    }
#pragma unroll
    for (int each = 0; each < kEach; ++each) {
      const int at = first + each * kWarp;
      if (at >= vectors) break;
      float d[kVector], x[kVector], up[kVector], act[kVector];
      Widen(given[each], d);
      Widen(gate[each], x);
      Widen(rest[each], up);
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const float sigmoid = Sigmoid(x[i]), silu = x[i] * sigmoid, weighted = d[i] * weight;
        sum += d[i] * silu * up[i];
        act[i] = silu * up[i] * weight;
        up[i] *= weighted * SiluSlope(x[i], sigmoid);
        d[i] = weighted * silu;
      }
      dact[at] = Narrow(act);
      dgate_up[at] = Narrow(up);
      dgate_up[vectors + at] = Narrow(d);
    }
  }
  sum = WarpSum(sum);
  if (lane == 0) dweights[row] = sum;
}

// Calls launch(thread blocks, threads, vectors of a row).
template <typename Launch>
void WithRowParts(const GatedShape& shape, Launch launch) {
  const auto vectors = static_cast<int>(shape.width / kVector);
  if (shape.rows == 0 || vectors == 0) return;
  const int wanted = (vectors + kEach * kWarp - 1) / (kEach * kWarp) * kWarp,
            threads = wanted < kMostThreads ? wanted : kMostThreads, of_block = threads * kEach;
  launch(dim3(static_cast<unsigned>(shape.rows), static_cast<unsigned>((vectors + of_block - 1) / of_block)), threads,
         vectors);
}

}  // namespace

void LaunchGatedActivation(const __nv_bfloat16* gate_up, const float* weights, const GatedShape& shape,
                           __nv_bfloat16* act, cudaStream_t stream) {
  WithRowParts(shape, [&](dim3 blocks, int threads, int vectors) {
    GatedActivationKernel<<<blocks, threads, 0, stream>>>(Vectors(gate_up), weights, vectors, Vectors(act));
  });
}

void LaunchGatedActivationGradient(const __nv_bfloat16* dact, const __nv_bfloat16* gate_up, const GatedShape& shape,
                                   __nv_bfloat16* dgate_up, cudaStream_t stream) {
  WithRowParts(shape, [&](dim3 blocks, int threads, int vectors) {
    GatedActivationGradientKernel<<<blocks, threads, 0, stream>>>(Vectors(dact), Vectors(gate_up), vectors,
                                                                  Vectors(dgate_up));
  });
}

void LaunchWeightedGatedActivationGradient(__nv_bfloat16* dact, const __nv_bfloat16* gate_up, const float* weights,
                                           const GatedShape& shape, __nv_bfloat16* dgate_up, float* dweights,
                                           cudaStream_t stream) {
  if (shape.rows == 0) return;
  const auto blocks = static_cast<unsigned>((shape.rows + kRowWarps - 1) / kRowWarps);
  WeightedGradientKernel<<<blocks, kRowWarps * kWarp, 0, stream>>>(Vectors(dact), Vectors(gate_up), weights, shape.rows,
                                                                   static_cast<int>(shape.width / kVector),
                                                                   Vectors(dgate_up), dweights);
}

}  // namespace planwright::executor::ops
