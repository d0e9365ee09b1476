// A bias of the rows of a residual sum, and its gradient, by kernels (executor/kernels/row_bias.h). The plain forms,
// which define them, are in executor/ops/elementwise.cc and linear.cc.
#include "executor/kernels/row_bias.h"

#include <ATen/ops/empty_like.h>

#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

RowShape ShapeOf(const at::Tensor& x) { return {.rows = x.numel() / x.size(-1), .width = x.size(-1)}; }

bool TakesWidth(const ValueType& x) { return InWholeVectors(x) && PlannedWidth(x) <= kWidestRow; }

}  // namespace

bool TakesAddResidualBias(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && binding.inputs[0]->dims == binding.inputs[1]->dims &&
         TakesWidth(*binding.inputs[0]) && InBf16Elements(binding.parameters[0]);
}

bool TakesBiasGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && TakesWidth(*binding.inputs[0]);
}

Tensors FastAddResidualBias(const ComputeContext& context) {
  if (!LieInVectors(context, 2)) return RunAddResidualBias(context);
  const at::Tensor &x = context.inputs[0], sum = at::empty_like(x);
  LaunchAddRowBias(Elements<Bf16>(x), Elements<Bf16>(context.inputs[1]), Elements<Bf16>(context.parameters[0]),
                   Elements<Bf16>(sum), ShapeOf(x), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {sum};
}

Tensors FastBiasGrad(const ComputeContext& context) {
  if (!LieInVectors(context, 1)) return RunBiasGrad(context);
  const at::Tensor& dy = context.inputs[0];
  const RowShape shape = ShapeOf(dy);
  const at::Tensor partials = PartialSums(context, RowBiasPartials(shape), shape.width);
  if (!partials.defined()) return {};
  LaunchRowBiasGradient(Elements<Bf16>(dy), Elements<float>(partials), shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(context, partials);
  return {};
}

}  // namespace planwright::executor::ops
