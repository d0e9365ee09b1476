// Elementwise operations in one pass each (executor/kernels/elementwise.h). A sum of three is rounded once.
// executor/ops/elementwise.cc has the plain forms, which define them.
#include "executor/kernels/elementwise.h"

#include <ATen/ops/empty_like.h>

#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

// The kernels take any number of elements.
bool TakesElementwise(const ComputeBinding& binding) {
  for (const ValueType* x : binding.inputs) {
    if (x->dtype != DType::kBf16 || x->dims != binding.inputs[0]->dims) return false;
  }
  return true;
}

}  // namespace

bool TakesSquaredRelu(const ComputeBinding& binding) { return TakesElementwise(binding); }
bool TakesSquaredReluGrad(const ComputeBinding& binding) { return TakesElementwise(binding); }
bool TakesAdd(const ComputeBinding& binding) { return binding.inputs.size() == 3 && TakesElementwise(binding); }

Tensors FastSquaredRelu(const ComputeContext& context) {
  if (!LieInVectors(context, 1)) return RunSquaredRelu(context);
  const at::Tensor &x = context.inputs[0], y = at::empty_like(x);
  LaunchSquaredRelu(Elements<Bf16>(x), Elements<Bf16>(y), x.numel(), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y};
}

Tensors FastSquaredReluGrad(const ComputeContext& context) {
  if (!LieInVectors(context, 2)) return RunSquaredReluGrad(context);
  const at::Tensor &dy = context.inputs[0], &x = context.inputs[1], dx = at::empty_like(x);
  LaunchSquaredReluGradient(Elements<Bf16>(dy), Elements<Bf16>(x), Elements<Bf16>(dx), x.numel(), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {dx};
}

Tensors FastAdd(const ComputeContext& context) {
  if (!LieInVectors(context, 3)) return RunAdd(context);
  const Tensors& in = context.inputs;
  const at::Tensor sum = at::empty_like(in[0]);
  LaunchAddThree(Elements<Bf16>(in[0]), Elements<Bf16>(in[1]), Elements<Bf16>(in[2]), Elements<Bf16>(sum), sum.numel(),
                 CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {sum};
}

}  // namespace planwright::executor::ops
