// What grouped_product.cc launches. No header of LibTorch: its compiler is another one.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

struct GroupedShape {
  const int* ends = nullptr;  // [runs], on the device, ascending; the last is at most `rows`
  int64_t runs = 0, rows = 0;
  int64_t inner = 0, width = 0;  // of a matrix
};

struct MatrixStrides {
  int64_t run = 0, inner = 0, width = 0;  // in elements
};

// Sums are fp32 of bf16 and fp32, fp64 of fp64. x [rows, inner] and out [rows, width] are contiguous. Rows behind the
// last run are left as they are.
template <typename T>
void LaunchGroupedProduct(const T* x, const T* matrices, MatrixStrides strides, T* out, GroupedShape shape,
                          cudaStream_t stream);

// sums [runs, inner, width] += a^T b of each run; a [rows, inner], b [rows, width], all contiguous.
template <typename Sum, typename T>
void LaunchGroupedOuterProducts(Sum* sums, const T* a, const T* b, GroupedShape shape, cudaStream_t stream);

}  // namespace planwright::executor::ops
