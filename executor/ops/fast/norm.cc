// Norms by kernels (executor/kernels/rms_norm.h, layer_norm.h), backwards also together with a sum of two that follows,
// whose other term is added before dx is rounded. executor/ops/norm.cc has the plain forms, which define them.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/kernels/layer_norm.h"
#include "executor/kernels/rms_norm.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/joined_form.h"
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

// Whether kernels make a sum of what has the type of `x`, and of another such term.
bool AddsTo(const ValueType& x, const ComputeBinding& add) {
  if (PlannedWidth(x) > kWidestSum) return false;
  for (const ValueType* term : add.inputs) {
    if (term->dtype != x.dtype || term->dims != x.dims) return false;
  }
  return true;
}

const at::Tensor& OtherTerm(const ComputeContext& add) { return add.inputs[1 - PlaceOfFirst(add)]; }

// `beside`: added to dx; null: nothing is.
Tensors RmsNormGradient(const ComputeContext& context, const Bf16* beside) {
  const at::Tensor &dy = context.inputs[0], &x = context.inputs[1], &scale = context.inputs[2];
  const RowShape shape = ShapeOf(x);
  const at::Tensor dx = at::empty_like(x), partials = PartialSums(context, RmsNormPartials(shape), shape.width);
  LaunchRmsNormGradient(Elements<Bf16>(dy), Elements<Bf16>(x), Elements<float>(scale),
                        Elements<Bf16>(context.parameters[0]), beside, Elements<Bf16>(dx), ElementsOrNull(partials),
                        shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(context, partials);
  return {dx};
}

Tensors LayerNormGradient(const ComputeContext& context, const Bf16* beside) {
  const at::Tensor &dy = context.inputs[0], &x = context.inputs[1], &mean = context.inputs[2],
                   &scale = context.inputs[3];
  const RowShape shape = ShapeOf(x);
  const at::Tensor dx = at::empty_like(x), partials = PartialSums(context, LayerNormPartials(shape), 2 * shape.width);
  LaunchLayerNormGradient(Elements<Bf16>(dy), Elements<Bf16>(x), Elements<float>(mean), Elements<float>(scale),
                          Elements<Bf16>(context.parameters[0]), beside, Elements<Bf16>(dx), ElementsOrNull(partials),
                          shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(context, partials);
  return {dx};
}

// Whether kernels may read the inputs of a backward: dy, x and statistics.
bool LieForNorms(const ComputeContext& context) {
  if (!LieInVectors(context, 2)) return false;
  for (size_t i = 2; i < context.inputs.size(); ++i) {
    if (!context.inputs[i].is_contiguous()) return false;
  }
  return true;
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
  return LieForNorms(context) ? RmsNormGradient(context, nullptr) : RunRmsNormGrad(context);
}

bool TakesRmsNormGradWithAdd(const ComputeBinding& of_first, const ComputeBinding& of_second) {
  return TakesRmsNormGrad(of_first) && AddsTo(*of_first.inputs[1], of_second);
}

Tensors FastRmsNormGradWithAdd(const ComputeContext& of_first, const ComputeContext& of_second) {
  const at::Tensor& other = OtherTerm(of_second);
  if (!LieForNorms(of_first) || !LiesInVectors(other)) return OneByOne(FastRmsNormGrad, of_first, RunAdd, of_second);
  return RmsNormGradient(of_first, Elements<Bf16>(other));
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
  return LieForNorms(context) ? LayerNormGradient(context, nullptr) : RunLayerNormGrad(context);
}

bool TakesLayerNormGradWithAdd(const ComputeBinding& of_first, const ComputeBinding& of_second) {
  return TakesLayerNormGrad(of_first) && AddsTo(*of_first.inputs[1], of_second);
}

Tensors FastLayerNormGradWithAdd(const ComputeContext& of_first, const ComputeContext& of_second) {
  const at::Tensor& other = OtherTerm(of_second);
  if (!LieForNorms(of_first) || !LiesInVectors(other)) return OneByOne(FastLayerNormGrad, of_first, RunAdd, of_second);
  return LayerNormGradient(of_first, Elements<Bf16>(other));
}

}  // namespace planwright::executor::ops
