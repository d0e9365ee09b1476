// What the kernels on rows of bf16 share: vectors of elements, the sigmoid, and sums over a warp.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace planwright::executor::ops {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// Elements of one 16-byte access.
constexpr int kVector = 8;

// On the host, for launches.
inline const uint4* Vectors(const __nv_bfloat16* data) { return reinterpret_cast<const uint4*>(data); }
inline uint4* Vectors(__nv_bfloat16* data) { return reinterpret_cast<uint4*>(data); }

// A bf16 is the upper half of an fp32.
__device__ __forceinline__ void WidenPair(unsigned pair, float& low, float& high) {
  low = __uint_as_float(pair << 16);
  high = __uint_as_float(pair & 0xffff0000u);
}
__device__ __forceinline__ void Widen(uint2 raw, float (&values)[4]) {
  WidenPair(raw.x, values[0], values[1]);
  WidenPair(raw.y, values[2], values[3]);
}
__device__ __forceinline__ void Widen(uint4 raw, float (&values)[kVector]) {
  WidenPair(raw.x, values[0], values[1]);
  WidenPair(raw.y, values[2], values[3]);
  WidenPair(raw.z, values[4], values[5]);
  WidenPair(raw.w, values[6], values[7]);
}

__device__ __forceinline__ unsigned NarrowPair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return static_cast<unsigned>(__bfloat16_as_ushort(pair.x)) | static_cast<unsigned>(__bfloat16_as_ushort(pair.y))
                                                                   << 16;
}
__device__ __forceinline__ uint2 Narrow(const float (&values)[4]) {
  return {NarrowPair(values[0], values[1]), NarrowPair(values[2], values[3])};
}
__device__ __forceinline__ uint4 Narrow(const float (&values)[kVector]) {
  return {NarrowPair(values[0], values[1]), NarrowPair(values[2], values[3]), NarrowPair(values[4], values[5]),
          NarrowPair(values[6], values[7])};
}

// 1 / (1 + exp(-x)), exact to a few bits of fp32. 0 and 1 far from 0; NaN stays NaN.
__device__ __forceinline__ float Sigmoid(float x) {
  constexpr float kLog2OfE = 1.4426950408889634f;
  float power, result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-kLog2OfE * x));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(1.0f + power));
  return result;
}

// The derivative of x sigmoid(x), where `sigmoid` is that of x.
__device__ __forceinline__ float SiluSlope(float x, float sigmoid) { return sigmoid * (1 + x * (1 - sigmoid)); }

// The sum over the warp, the same bits in every lane.
template <typename T>
__device__ __forceinline__ T WarpSum(T value) {
#pragma unroll
  for (int apart = kWarp / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(kAllLanes, value, apart);
  return value;
}

// Elements of a parameter. It may lie at any address, so it is read element by element.
__device__ __forceinline__ void LoadParameter(const __nv_bfloat16* parameter, float (&values)[kVector]) {
#pragma unroll
  for (int i = 0; i < kVector; ++i) values[i] = __bfloat162float(parameter[i]);
}

}  // namespace planwright::executor::ops
