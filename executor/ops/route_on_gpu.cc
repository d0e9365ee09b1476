// See route_on_gpu.h. Products of two bf16 numbers are exact in fp32, so tensor cores that add in fp32 give the logits
// that the plain form gets from widened operands, up to the order of additions.
#include "executor/ops/route_on_gpu.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include "executor/kernels/route.h"
#include "executor/ops/cuda_operands.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

bool TakesSizes(const ComputeContext& context, const at::Tensor& n) {
  const at::Tensor& gate = context.parameters[0];
  const int64_t experts = gate.size(0), top_k = context.instruction.integer("top_k");
  return OnGpuInBf16(n) && gate.scalar_type() == at::kBFloat16 && n.numel() > 0 && experts <= kMostExperts &&
         top_k <= kMostChoices && top_k <= experts;
}

RouteShape ShapeOf(const ComputeContext& context, const at::Tensor& n) {
  return {n.size(0), n.size(1), context.parameters[0].size(0), context.instruction.integer("top_k"),
          static_cast<float>(context.instruction.real("scale"))};
}

}  // namespace

bool RouteTakesKernels(const ComputeContext& context) {
  const bool replayed = context.inputs.size() > 1;
  return !replayed && TakesSizes(context, context.inputs[0]) && context.parameters[1].scalar_type() == at::kFloat;
}

bool RouteGradTakesKernels(const ComputeContext& context) {
  return TakesSizes(context, context.inputs[1]) && context.inputs[0].scalar_type() == at::kFloat &&
         context.inputs[4].scalar_type() == at::kFloat &&
         (!context.learns() || context.gradients[0].scalar_type() == at::kFloat);
}

Tensors RouteOnGpu(const ComputeContext& context) {
  const at::Tensor &n = context.inputs[0], &gate = context.parameters[0];
  const RouteShape shape = ShapeOf(context, n);
  const int64_t tokens = shape.positions * shape.samples;
  const at::Tensor logits = at::mm(AsRows(n), gate.t(), at::kFloat), bias = context.parameters[1].contiguous();
  const auto wide = logits.options(), integers = wide.dtype(at::kLong);
  const at::Tensor weights = at::empty({tokens, shape.top_k}, wide), ids = at::empty({tokens, shape.top_k}, integers),
                   counts = at::zeros({shape.experts}, integers), probs = at::empty({tokens, shape.experts}, wide),
                   aux_counts = at::zeros({shape.samples, shape.experts}, integers);
  const RouteOutputs out = {Elements<float>(weights), Elements<int64_t>(ids), Elements<int64_t>(counts),
                            Elements<float>(probs), Elements<int64_t>(aux_counts)};
  LaunchRoute(Elements<float>(logits), Elements<float>(bias), shape, out, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {weights, ids, counts, probs, aux_counts, logits};
}

Tensors RouteGradOnGpu(const ComputeContext& context) {
  const Instruction& instruction = context.instruction;
  const at::Tensor dweights = context.inputs[0].contiguous(), ids = context.inputs[3].contiguous(),
                   logits = context.inputs[4].contiguous(), rows = AsRows(context.inputs[1]),
                   &gate = context.parameters[0];
  const RouteShape shape = ShapeOf(context, context.inputs[1]);
  at::Tensor aux_counts;
  double factor = 0;
  if (instruction.attributes.contains("aux_scale")) {
    aux_counts = context.inputs[5].contiguous();
    const auto sequence = static_cast<double>(instruction.integer("sequence"));
    factor = instruction.real("aux_scale") * static_cast<double>(shape.experts) /
             (static_cast<double>(shape.top_k) * sequence * sequence);
  }
  // The gradient of the logits is fp32. As a sum of two bf16 terms it loses at most 2^-16 of itself, and both products
  // are again products of bf16 with sums in fp32. A product in fp32 would take several times as long.
  const at::Tensor terms = at::empty({rows.size(0), 2 * shape.experts}, rows.options());
  LaunchRouteGrad(Elements<float>(dweights), Elements<int64_t>(ids), Elements<float>(logits),
                  aux_counts.defined() ? Elements<int64_t>(aux_counts) : nullptr, static_cast<float>(factor), shape,
                  Elements<__nv_bfloat16>(terms), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (context.learns()) {
    const at::Tensor sums = at::mm(terms.t(), rows, at::kFloat);  // of the first terms, then of the second
    context.gradients[0].add_(sums.narrow(0, 0, shape.experts)).add_(sums.narrow(0, shape.experts, shape.experts));
  }
  // Both terms meet the gate in one product, so the sum of the two is rounded once.
  return {at::mm(terms, at::cat({gate, gate})).view(context.inputs[1].sizes())};
}

}  // namespace planwright::executor::ops
