// What kernels on rows of bf16 share: a thread moves eight elements (16 bytes) at once and computes on them in fp32.
// Only files that nvcc compiles include this.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace planwright::executor::ops {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__device__ __forceinline__ void Widen8(uint4 packed, float (&wide)[8]) {
  const unsigned pairs[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    wide[2 * i] = __uint_as_float(pairs[i] << 16);  // bf16 is the upper half of fp32
    wide[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ uint4 Round8(const float (&wide)[8]) {
  unsigned pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned low = __bfloat16_as_ushort(__float2bfloat16_rn(wide[2 * i]));
    const unsigned high = __bfloat16_as_ushort(__float2bfloat16_rn(wide[2 * i + 1]));
    pairs[i] = low | high << 16;
  }
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// The sum over the 32 lanes, in each of them. The order of additions is fixed.
template <typename T>
__device__ __forceinline__ T SumOverWarp(T value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

}  // namespace planwright::executor::ops
