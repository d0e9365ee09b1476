// The routed experts: products of all experts at once, in every dtype, and in bf16 one kernel between them
// (executor/kernels/expert_activation.h). executor/ops/experts.cc has the plain form, which defines operands and
// results.
#include "executor/ops/experts.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/kernels/expert_activation.h"
#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/expert_rows_on_gpu.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/gpu_rows.h"

namespace planwright::executor::ops {
namespace {

// Whether the kernel of the activation takes these: at least one row in bf16, and fp32 row weights.
bool ActivationTakes(const at::Tensor& rows, const at::Tensor& weights) {
  return rows.scalar_type() == at::kBFloat16 && rows.size(0) > 0 && weights.scalar_type() == at::kFloat;
}

}  // namespace

bool TakesExperts(const ComputeBinding& /*binding*/) { return true; }
bool TakesExpertsGrad(const ComputeBinding& /*binding*/) { return true; }

Tensors FastExperts(const ComputeContext& context) {
  const at::Tensor &received = context.inputs[0], &up = context.parameters[0], &down = context.parameters[1];
  const ExpertRowsOnGpu order(context.inputs[2], up, received);
  if (!ActivationTakes(received, context.inputs[1]) || up.size(1) % 8 != 0) return ExpertsOfRows(order, context);
  const at::Tensor pre = order.Product(order.Sort(received), up.transpose(1, 2));
  const at::Tensor weights = order.Sort(context.inputs[1]).contiguous();
  at::Tensor act = at::empty_like(pre);
  LaunchExpertActivation(Elements<__nv_bfloat16>(pre), Elements<float>(weights), pre.size(0), pre.size(1),
                         Elements<__nv_bfloat16>(act), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const at::Tensor out = order.Unsort(order.Product(act, down.transpose(1, 2)));
  act.reset();  // memory for what follows
  return {out, order.Unsort(pre)};
}

Tensors FastExpertsGrad(const ComputeContext& context) {
  const at::Tensor &up = context.parameters[0], &down = context.parameters[1], &received = context.inputs[1];
  const ExpertRowsOnGpu order(context.inputs[4], up, received);
  if (!ActivationTakes(received, context.inputs[2]) || !HasAlignedRows(context.inputs[3]))
    return ExpertsGradOfRows(order, context);
  const at::Tensor weights = order.Sort(context.inputs[2]).contiguous();
  at::Tensor dout = order.Sort(context.inputs[0]), pre = order.Sort(context.inputs[3]);
  const at::Tensor dpre = order.Product(dout, down);  // dact, until the kernel turns it into dpre in place
  const at::Tensor dweights = at::empty({dpre.size(0)}, weights.options());
  at::Tensor act;  // in the place of a sorted pre
  if (context.learns()) act = pre.is_same(context.inputs[3]) ? at::empty_like(dpre) : pre;
  LaunchExpertActivationGrad(Elements<__nv_bfloat16>(dpre), Elements<__nv_bfloat16>(pre), Elements<float>(weights),
                             dpre.size(0), dpre.size(1), Elements<float>(dweights),
                             act.defined() ? Elements<__nv_bfloat16>(act) : nullptr, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (context.learns()) order.AddOuterProducts(context.gradients[1], dout, act, context.writes_gradients);
  act.reset(), pre.reset(), dout.reset();  // memory for what follows
  if (context.learns())
    order.AddOuterProducts(context.gradients[0], dpre, order.Sort(received), context.writes_gradients);
  return {order.Unsort(order.Product(dpre, up)), order.Unsort(dweights)};
}

}  // namespace planwright::executor::ops
