// The sum of squares of a bridge's guard by the kernel of gradient norms (executor/kernels/adamw.h).
// executor/ops/square_sum.cc has the plain form, which defines it.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "executor/kernels/adamw.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"

namespace planwright::executor::ops {

bool TakesSquareSum(const ComputeBinding& binding) { return PlannedInBf16(binding, 1); }

Tensors FastSquareSum(const ComputeContext& context) {
  if (!LieInVectors(context, 1)) return RunSquareSum(context);
  const at::Tensor& x = context.inputs[0];
  const at::TensorOptions wide = x.options().dtype(at::kDouble);
  const at::Tensor parts = at::empty({kSquareSumParts}, wide), squares = at::zeros({1}, wide);
  LaunchAddSquares(Elements<__nv_bfloat16>(x), x.numel(), /*count=*/nullptr, Elements<double>(parts),
                   Elements<double>(squares), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {squares, at::full({1}, x.numel(), x.options().dtype(at::kLong))};
}

}  // namespace planwright::executor::ops
