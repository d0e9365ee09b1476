// The gate of a gated MLP in one pass (executor/kernels/gated_activation.h). executor/ops/gated_silu.cc has the plain
// form, which defines it.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/kernels/gated_activation.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

bool TakesWidth(const ComputeBinding& binding) { return binding.instruction.integer("width") % 8 == 0; }

GatedShape ShapeOf(const ComputeContext& context, const at::Tensor& gu) {
  return {.rows = gu.numel() / gu.size(-1), .width = context.instruction.integer("width")};
}

}  // namespace

bool TakesGatedSilu(const ComputeBinding& binding) { return PlannedInBf16(binding, 1) && TakesWidth(binding); }
bool TakesGatedSiluGrad(const ComputeBinding& binding) { return PlannedInBf16(binding, 2) && TakesWidth(binding); }

Tensors FastGatedSilu(const ComputeContext& context) {
  const at::Tensor& gu = context.inputs[0];
  if (!LieInVectors(context, 1) || gu.numel() == 0) return RunGatedSilu(context);
  const GatedShape shape = ShapeOf(context, gu);
  const at::Tensor h = at::empty(WithWidth(gu, shape.width), gu.options());
  LaunchGatedActivation(Elements<Bf16>(gu), nullptr, shape, Elements<Bf16>(h), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {h};
}

Tensors FastGatedSiluGrad(const ComputeContext& context) {
  const at::Tensor &dh = context.inputs[0], &gu = context.inputs[1];
  if (!LieInVectors(context, 2) || gu.numel() == 0) return RunGatedSiluGrad(context);
  const at::Tensor dgu = at::empty_like(gu);
  LaunchGatedActivationGradient(Elements<Bf16>(dh), Elements<Bf16>(gu), ShapeOf(context, gu), Elements<Bf16>(dgu),
                                CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {dgu};
}

}  // namespace planwright::executor::ops
