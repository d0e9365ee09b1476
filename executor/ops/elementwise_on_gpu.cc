#include "executor/ops/elementwise_on_gpu.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "executor/kernels/elementwise.h"
#include "executor/ops/row_kernels.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

}  // namespace

bool TakesElementwise(const Tensors& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](const at::Tensor& x) { return InVectors(x) && x.sizes() == inputs[0].sizes(); });
}

Tensors SquaredReluOnGpu(const ComputeContext& context) {
  const at::Tensor &x = context.inputs[0], y = at::empty_like(x);
  LaunchSquaredRelu(Elements<Bf16>(x), Elements<Bf16>(y), x.numel(), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y};
}

Tensors SquaredReluGradOnGpu(const ComputeContext& context) {
  const at::Tensor &dy = context.inputs[0], &x = context.inputs[1], dx = at::empty_like(x);
  LaunchSquaredReluGradient(Elements<Bf16>(dy), Elements<Bf16>(x), Elements<Bf16>(dx), x.numel(), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {dx};
}

Tensors AddThreeOnGpu(const ComputeContext& context) {
  const Tensors& in = context.inputs;
  const at::Tensor sum = at::empty_like(in[0]);
  LaunchAddThree(Elements<Bf16>(in[0]), Elements<Bf16>(in[1]), Elements<Bf16>(in[2]), Elements<Bf16>(sum), sum.numel(),
                 CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {sum};
}

}  // namespace planwright::executor::ops
