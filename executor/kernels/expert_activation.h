// Kernels between the two products of the routed experts (executor/ops/fast/experts.cc), with r = relu(pre) and the
// routing weight w of each row. width is a multiple of 8, and matrices start at multiples of 16 bytes. nvcc compiles
// the kernels, so nothing of LibTorch is here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// act [rows,width] = r^2 w, for pre [rows,width] and weights [rows]. Computed in fp32, rounded once.
void LaunchExpertActivation(const __nv_bfloat16* pre, const float* weights, int64_t rows, int64_t width,
                            __nv_bfloat16* act, cudaStream_t stream);

// From gradient = dact [rows,width]: dweights [rows] = the sum over width of dact r^2, and gradient becomes
// dpre = 2 dact r w in place. act [rows,width] = r^2 w again, also in the place of pre, or null: not wanted. All in
// fp32, rounded once.
void LaunchExpertActivationGrad(__nv_bfloat16* gradient, const __nv_bfloat16* pre, const float* weights, int64_t rows,
                                int64_t width, float* dweights, __nv_bfloat16* act, cudaStream_t stream);

}  // namespace planwright::executor::ops
