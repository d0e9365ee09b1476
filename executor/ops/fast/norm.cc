// Norms by kernels (executor/kernels/rms_norm.h, layer_norm.h). executor/ops/norm.cc has the plain forms, which define
// them.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/kernels/layer_norm.h"
#include "executor/kernels/rms_norm.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

RowShape ShapeOf(const at::Tensor& x) { return {.rows = x.numel() / x.size(-1), .width = x.size(-1)}; }

// `x`: an input.
bool TakesWidth(const ComputeBinding& binding, const ValueType& x) {
  return InWholeVectors(x) && PlannedWidth(x) <= kWidestRow && InBf16Elements(binding.parameters[0]);
}

}  // namespace

bool TakesRmsNorm(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && TakesWidth(binding, *binding.inputs[0]);
}

bool TakesRmsNormGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && binding.inputs[2]->dtype == DType::kFp32 &&
         TakesWidth(binding, *binding.inputs[1]);
}

Tensors FastRmsNorm(const ComputeContext& context) {
  if (!LieInVectors(context, 1)) return RunRmsNorm(context);
  const at::Tensor& x = context.inputs[0];
  const at::Tensor y = at::empty_like(x), scale = at::empty(WithWidth(x, 1), x.options().dtype(at::kFloat));
  LaunchRmsNorm(Elements<Bf16>(x), Elements<Bf16>(context.parameters[0]),
                static_cast<float>(context.instruction.real("eps")), Elements<Bf16>(y), Elements<float>(scale),
                ShapeOf(x), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y, scale};
}

Tensors FastRmsNormGrad(const ComputeContext& context) {
  if (!LieInVectors(context, 2) || !context.inputs[2].is_contiguous()) return RunRmsNormGrad(context);
  const at::Tensor &dy = context.inputs[0], &x = context.inputs[1], &scale = context.inputs[2];
  const RowShape shape = ShapeOf(x);
  const at::Tensor dx = at::empty_like(x), partials = PartialSums(context, RmsNormPartials(shape), shape.width);
  LaunchRmsNormGradient(Elements<Bf16>(dy), Elements<Bf16>(x), Elements<float>(scale),
                        Elements<Bf16>(context.parameters[0]), Elements<Bf16>(dx), ElementsOrNull(partials), shape,
                        CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(context, partials);
  return {dx};
}

bool TakesLayerNorm(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && TakesWidth(binding, *binding.inputs[0]) && InBf16Elements(binding.parameters[1]);
}

bool TakesLayerNormGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && binding.inputs[2]->dtype == DType::kFp32 &&
         binding.inputs[3]->dtype == DType::kFp32 && TakesWidth(binding, *binding.inputs[1]);
}

Tensors FastLayerNorm(const ComputeContext& context) {
  if (!LieInVectors(context, 1)) return RunLayerNorm(context);
  const at::Tensor& x = context.inputs[0];
  const at::Tensor y = at::empty_like(x), mean = at::empty(WithWidth(x, 1), x.options().dtype(at::kFloat)),
                   scale = at::empty_like(mean);
  LaunchLayerNorm(Elements<Bf16>(x), {Elements<Bf16>(context.parameters[0]), Elements<Bf16>(context.parameters[1])},
                  static_cast<float>(context.instruction.real("eps")), Elements<Bf16>(y), Elements<float>(mean),
                  Elements<float>(scale), ShapeOf(x), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y, mean, scale};
}

Tensors FastLayerNormGrad(const ComputeContext& context) {
  const at::Tensor &dy = context.inputs[0], &x = context.inputs[1], &mean = context.inputs[2],
                   &scale = context.inputs[3];
  if (!LieInVectors(context, 2) || !mean.is_contiguous() || !scale.is_contiguous()) return RunLayerNormGrad(context);
  const RowShape shape = ShapeOf(x);
  const at::Tensor dx = at::empty_like(x), partials = PartialSums(context, LayerNormPartials(shape), 2 * shape.width);
  LaunchLayerNormGradient(Elements<Bf16>(dy), Elements<Bf16>(x), Elements<float>(mean), Elements<float>(scale),
                          Elements<Bf16>(context.parameters[0]), Elements<Bf16>(dx), ElementsOrNull(partials), shape,
                          CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(context, partials);
  return {dx};
}

}  // namespace planwright::executor::ops
