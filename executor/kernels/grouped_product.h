// The kernels of executor/ops/fast/grouped_product.cc. nvcc compiles them, so this header includes nothing of LibTorch:
// that would be slow and fragile there.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

struct GroupedShape {
  const int* ends = nullptr;  // [runs], on the device, ascending: the row behind each run; the last is at most `rows`
  int64_t runs = 0, rows = 0;
  int64_t inner = 0, width = 0;  // rows and columns of a matrix
};

struct MatrixStrides {
  int64_t run = 0, inner = 0, width = 0;  // in elements
};

// out = the rows of each run of x times the run's matrix. T: __nv_bfloat16, float or double. Sums are fp32 for bf16 and
// fp32, fp64 for fp64. x [rows, inner] and out [rows, width] are contiguous. Rows behind the last run are not written.
template <typename T>
void LaunchGroupedProduct(const T* x, const T* matrices, MatrixStrides strides, T* out, GroupedShape shape,
                          cudaStream_t stream);

// sums [runs, inner, width] += a^T b of each run, for a [rows, inner] and b [rows, width]. All are contiguous.
template <typename Sum, typename T>
void LaunchGroupedOuterProducts(Sum* sums, const T* a, const T* b, GroupedShape shape, cudaStream_t stream);

}  // namespace planwright::executor::ops
