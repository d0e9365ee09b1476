// The instructions behind warp_tile.cuh, one function each, as the PTX manual defines them. All 32 lanes of a warp call
// them together. Lane l is in row l / 4 of a fragment, and has two neighbouring elements of it in one register.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace planwright::executor::ops {

// Four matrices of 8 x 8 from shared memory. `row`: the address of row l % 8 of matrix l / 8, 16 bytes. Register m gets
// elements (l / 4, 2 (l % 4)) and the one to its right of matrix m.
__device__ inline void LoadMatrices(uint32_t (&fragment)[4], const __nv_bfloat16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row))));
}

// The same of the transposed matrices.
__device__ inline void LoadMatricesTransposed(uint32_t (&fragment)[4], const __nv_bfloat16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row))));
}

// sum [16,8] += a [16,16] b [16,8], with fp32 sums.
__device__ inline void MultiplyAdd(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Begins to copy 16 bytes to shared memory; zeros instead if they are not there. Both addresses are multiples of 16.
__device__ inline void BeginCopy(void* to, const void* from, bool there) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(there ? 16 : 0)
      : "memory");
}

// Waits for all copies that this thread began. Others see them after the next __syncthreads.
__device__ inline void WaitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// 2 to the power of x, good to two units in the last place; 0 for minus infinity.
__device__ inline float PowerOfTwo(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

}  // namespace planwright::executor::ops
