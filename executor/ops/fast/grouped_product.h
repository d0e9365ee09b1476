// Products of runs of rows, each run with a matrix of its own, on a GPU. Only the GPU knows how long the runs are: the
// host launches enough thread blocks for any lengths and never waits. In bf16 there are kernels on tensor cores: of
// products on Hopper alone (LibTorch's grouped product serves other GPUs), of outer products on all. The others are
// plain tiles: they serve fp32, fp64 and odd widths, where speed matters less.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor::ops {

// x [R,i], matrices [E,i,o] -> [R,o]: each row of run e times matrices[e]. x and matrices have one dtype (bf16, fp32 or
// fp64), which the result has too; sums inside are fp32, or fp64 for fp64. matrices may have any strides. ends [E] i32:
// the row behind each run; or [P,E], where each run has P parts and MultipliesOnHopper. All tensors are on the current
// device. c10::Error if shapes or dtypes do not fit.
at::Tensor GroupedProduct(const at::Tensor& x, const at::Tensor& matrices, const at::Tensor& ends);

// Whether GroupedProduct uses Hopper's tensor cores for runs of so many parts: bf16, x contiguous, matrices stored by
// rows or by columns, and what executor/kernels/run_products.h asks for.
bool MultipliesOnHopper(const at::Tensor& x, const at::Tensor& matrices, int64_t parts = 1);

// sums[e] += a_e^T b_e over the rows of run e, in an order that only the lengths of its parts decide, so that runs
// repeat exactly; or sums[e] = a_e^T b_e, if this `writes`, where what was there is not read. a [R,i] and b [R,o] have
// one dtype; sums [E,i,o] is contiguous, fp32 for bf16 and fp32, fp64 for fp64. Rows behind the last run have no
// influence. ends as above: of several parts where AddsOuterProductsOnTensorCores.
void AddGroupedOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, const at::Tensor& ends,
                             bool writes);

// Whether AddGroupedOuterProducts uses tensor cores for runs of so many parts: bf16 with fp32 sums, i and o multiples
// of 8, and what executor/kernels/outer_products.h asks for.
bool AddsOuterProductsOnTensorCores(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b,
                                    int64_t parts = 1);

}  // namespace planwright::executor::ops
