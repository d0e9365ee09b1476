// The routed experts with a gate: products of all experts at once, in every dtype, and in bf16 one kernel between them
// (executor/kernels/gated_activation.h). executor/ops/gated_experts.cc has the plain form, which defines it.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/kernels/gated_activation.h"
#include "executor/ops/experts.h"
#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/expert_rows_on_gpu.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/gpu_rows.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

// At least one row in bf16, of a gate that is whole vectors, and fp32 row weights.
bool KernelTakes(const ComputeContext& context, const at::Tensor& rows, const at::Tensor& weights) {
  return rows.scalar_type() == at::kBFloat16 && rows.size(0) > 0 && weights.scalar_type() == at::kFloat &&
         context.instruction.integer("ffn") % 8 == 0;
}

}  // namespace

bool TakesGatedExperts(const ComputeBinding& /*binding*/) { return true; }
bool TakesGatedExpertsGrad(const ComputeBinding& /*binding*/) { return true; }

Tensors FastGatedExperts(const ComputeContext& context) {
  const at::Tensor &received = context.inputs[0], &gate_up = context.parameters[0], &down = context.parameters[1];
  const ExpertRowsOnGpu order(context.inputs[2], gate_up, received);
  if (!KernelTakes(context, received, context.inputs[1])) return GatedExpertsOfRows(order, context);
  const at::Tensor pre = order.Product(order.Sort(received), gate_up.transpose(1, 2));
  const GatedShape shape = {pre.size(0), pre.size(1) / 2};
  const at::Tensor weights = order.Sort(context.inputs[1]).contiguous();
  at::Tensor act = at::empty({shape.rows, shape.width}, pre.options());
  LaunchGatedActivation(Elements<Bf16>(pre), Elements<float>(weights), shape, Elements<Bf16>(act), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const at::Tensor out = order.Unsort(order.Product(act, down.transpose(1, 2)));
  act.reset();  // memory for what follows
  return {out, order.Unsort(pre)};
}

Tensors FastGatedExpertsGrad(const ComputeContext& context) {
  const at::Tensor &gate_up = context.parameters[0], &down = context.parameters[1], &received = context.inputs[1];
  const ExpertRowsOnGpu order(context.inputs[4], gate_up, received);
  if (!KernelTakes(context, received, context.inputs[2]) || !HasAlignedRows(context.inputs[3]))
    return GatedExpertsGradOfRows(order, context);
  const at::Tensor weights = order.Sort(context.inputs[2]).contiguous(), pre = order.Sort(context.inputs[3]);
  at::Tensor dout = order.Sort(context.inputs[0]), act = order.Product(dout, down);    // its gradient, until the kernel
  const at::Tensor dpre = pre.is_same(context.inputs[3]) ? at::empty_like(pre) : pre,  // in the place of a sorted pre
      dweights = at::empty({pre.size(0)}, weights.options());
  LaunchWeightedGatedActivationGradient(Elements<Bf16>(act), Elements<Bf16>(pre), Elements<float>(weights),
                                        {act.size(0), act.size(1)}, Elements<Bf16>(dpre), Elements<float>(dweights),
                                        CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (context.learns()) order.AddOuterProducts(context.gradients[1], dout, act, context.writes_gradients);
  act.reset(), dout.reset();  // memory for what follows
  if (context.learns())
    order.AddOuterProducts(context.gradients[0], dpre, order.Sort(received), context.writes_gradients);
  return {order.Unsort(order.Product(dpre, gate_up)), order.Unsort(dweights)};
}

}  // namespace planwright::executor::ops
