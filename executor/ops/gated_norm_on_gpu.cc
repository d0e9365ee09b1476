#include "executor/ops/gated_norm_on_gpu.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/kernels/gated_norm.h"
#include "executor/ops/row_kernels.h"

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

}  // namespace

bool TakesGatedNorm(const ComputeContext& context, size_t index) {
  for (size_t i = 0; i <= index; ++i) {
    if (!InVectors(context.inputs[i])) return false;
  }
  if (context.inputs.size() > index + 1 && !InFp32(context.inputs[index + 1])) return false;
  const int64_t group = context.instruction.integer("group_size");
  return InElements(context.parameters[0]) && group % 8 == 0 && group <= kWidestGroup &&
         context.inputs[index].size(2) % 8 == 0;
}

Tensors GatedNormOnGpu(const ComputeContext& context, const ParameterPart& own) {
  const at::Tensor &y = context.inputs[0], &zxbcdt = context.inputs[1], weight = own.Of(context.parameters[0]);
  const GatedNormShape shape = ShapeOf(context, y, zxbcdt);
  const at::Tensor yn = at::empty_like(y);
  const at::Tensor scale = at::empty({y.size(0), y.size(1), shape.inner / shape.group}, y.options().dtype(at::kFloat));
  LaunchGatedNorm(Elements<Bf16>(y), Elements<Bf16>(zxbcdt), Elements<Bf16>(weight),
                  static_cast<float>(context.instruction.real("eps")), Elements<Bf16>(yn), Elements<float>(scale),
                  shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {yn, scale};
}

Tensors GatedNormGradOnGpu(const ComputeContext& context, const ParameterPart& own) {
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
