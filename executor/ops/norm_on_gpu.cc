#include "executor/ops/norm_on_gpu.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/kernels/rms_norm.h"
#include "executor/ops/row_kernels.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

RowShape ShapeOf(const at::Tensor& x) { return {.rows = x.numel() / x.size(-1), .width = x.size(-1)}; }

}  // namespace

bool TakesRmsNorm(const ComputeContext& context, size_t index) {
  for (size_t i = 0; i <= index; ++i) {
    if (!InVectors(context.inputs[i])) return false;
  }
  if (context.inputs.size() > index + 1 && !InFp32(context.inputs[index + 1])) return false;
  const int64_t width = context.inputs[index].size(-1);
  return InElements(context.parameters[0]) && width % 8 == 0 && width > 0 && width <= kWidestRow;
}

Tensors RmsNormOnGpu(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const at::Tensor y = at::empty_like(x), scale = at::empty(WithWidth(x, 1), x.options().dtype(at::kFloat));
  LaunchRmsNorm(Elements<Bf16>(x), Elements<Bf16>(context.parameters[0]),
                static_cast<float>(context.instruction.real("eps")), Elements<Bf16>(y), Elements<float>(scale),
                ShapeOf(x), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y, scale};
}

Tensors RmsNormGradOnGpu(const ComputeContext& context) {
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

}  // namespace planwright::executor::ops
