// Kernels that compute each bf16 element from the same elements of their inputs, in one pass. Sums and products are
// fp32 and rounded once. All tensors have `count` elements, are contiguous and aligned to 16 bytes.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// y = relu(x)^2
void LaunchSquaredRelu(const __nv_bfloat16* x, __nv_bfloat16* y, int64_t count, cudaStream_t stream);

// dx = 2 relu(x) dy
void LaunchSquaredReluGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, __nv_bfloat16* dx, int64_t count,
                               cudaStream_t stream);

// sum = a + b + c
void LaunchAddThree(const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* c, __nv_bfloat16* sum,
                    int64_t count, cudaStream_t stream);

}  // namespace planwright::executor::ops
