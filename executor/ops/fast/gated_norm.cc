// The gated norm by kernels (executor/kernels/gated_norm.h). executor/ops/gated_norm.cc has the plain form, which
// defines it.
#include "executor/kernels/gated_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

// `y`: [S,B,inner].
GatedNormShape ShapeOf(const ComputeContext& context, const at::Tensor& y, const at::Tensor& zxbcdt) {
  return {.rows = y.size(0) * y.size(1),
          .inner = y.size(2),
          .group = context.instruction.integer("group_size"),
          .features = zxbcdt.size(2)};
}

bool TakesGroups(const ComputeBinding& binding, const ValueType& zxbcdt) {
  const int64_t group = binding.instruction.integer("group_size");
  return group % 8 == 0 && group <= kWidestGroup && InWholeVectors(zxbcdt) && InBf16Elements(binding.parameters[0]);
}

ParameterPart WeightPart(const ComputeContext& context) {
  return ParameterPart(context, {context.instruction.integer("inner")});
}

}  // namespace

bool TakesGatedNorm(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && TakesGroups(binding, *binding.inputs[1]);
}

bool TakesGatedNormGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 3) && binding.inputs[3]->dtype == DType::kFp32 &&
         TakesGroups(binding, *binding.inputs[2]);
}

Tensors FastGatedNorm(const ComputeContext& context) {
  if (!LieInVectors(context, 2)) return RunGatedNorm(context);
  const at::Tensor &y = context.inputs[0], &zxbcdt = context.inputs[1],
                   weight = WeightPart(context).Of(context.parameters[0]);
  const GatedNormShape shape = ShapeOf(context, y, zxbcdt);
  const at::Tensor yn = at::empty_like(y);
  const at::Tensor scale = at::empty({y.size(0), y.size(1), shape.inner / shape.group}, y.options().dtype(at::kFloat));
  LaunchGatedNorm(Elements<Bf16>(y), Elements<Bf16>(zxbcdt), Elements<Bf16>(weight),
                  static_cast<float>(context.instruction.real("eps")), Elements<Bf16>(yn), Elements<float>(scale),
                  shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {yn, scale};
}

Tensors FastGatedNormGrad(const ComputeContext& context) {
  if (!LieInVectors(context, 3) || !context.inputs[3].is_contiguous()) return RunGatedNormGrad(context);
  const ParameterPart own = WeightPart(context);
  const at::Tensor &dyn = context.inputs[0], &y = context.inputs[1], &zxbcdt = context.inputs[2],
                   &scale = context.inputs[3], weight = own.Of(context.parameters[0]);
  const GatedNormShape shape = ShapeOf(context, y, zxbcdt);
  const at::Tensor dy = at::empty_like(y), dz = at::empty_like(y);
  const at::Tensor partials = PartialSums(context, GatedNormPartials(shape), shape.inner);
  LaunchGatedNormGradient(Elements<Bf16>(dyn), Elements<Bf16>(y), Elements<Bf16>(zxbcdt), Elements<float>(scale),
                          Elements<Bf16>(weight), Elements<Bf16>(dy), Elements<Bf16>(dz), ElementsOrNull(partials),
                          shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(context, partials, own);
  return {dy, dz};
}

}  // namespace planwright::executor::ops
