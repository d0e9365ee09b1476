// Products of runs of rows with the matrix of their run, on a GPU that alone knows how long the runs are. The host
// launches enough blocks for any lengths and never asks. LibTorch's grouped product does the same for bf16 alone.
//
// Plain tiles without tensor cores.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor::ops {

// Row r of run e is row r of x times matrices[e]. x [R,i] and matrices [E,i,o] of one type (bf16, fp32, fp64), matrices
// with any strides; ends [E] int32 is where each run ends. All on the current device. Gives [R,o], summed in fp32 or
// fp64.
at::Tensor GroupedProduct(const at::Tensor& x, const at::Tensor& matrices, const at::Tensor& ends);

// sums[e] += a_e^T b_e over the rows of run e, in a fixed order. a [R,i] and b [R,o] of one type, sums [E,i,o]
// contiguous: fp32 of bf16 or fp32, fp64 of fp64.
void AddGroupedOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, const at::Tensor& ends);

}  // namespace planwright::executor::ops
