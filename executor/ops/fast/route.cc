// The routers in bf16: one kernel behind the product with the gate, one before the products of the backward
// (executor/kernels/route.h). executor/ops/route.cc has the plain form, which defines it. Products of two bf16 numbers
// are exact in fp32, so tensor cores that add in fp32 give the logits that the plain form gets from widened operands,
// up to the order of additions.
#include "executor/kernels/route.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/routing.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

bool TakesGate(const ComputeBinding& binding) {
  const at::Tensor& gate = binding.parameters[0];
  const int64_t experts = gate.size(0), top_k = binding.instruction.integer("top_k");
  return gate.scalar_type() == at::kBFloat16 && experts <= kMostExperts && top_k <= kMostChoices && top_k <= experts;
}

RouteShape ShapeOf(const ComputeContext& context, const at::Tensor& n, RouteScores scores) {
  return {n.size(0),
          n.size(1),
          context.parameters[0].size(0),
          context.instruction.integer("top_k"),
          NormalizesWeights(context.instruction),
          scores == RouteScores::kSigmoid ? static_cast<float>(context.instruction.real("scale")) : 1,
          scores};
}

// Of the backward: where the ids stand among its inputs, and the logits and counts behind them.
size_t IdsAt(RouteScores scores) { return scores == RouteScores::kSigmoid ? 3 : 2; }

bool TakesGrad(const ComputeBinding& binding, RouteScores scores) {
  const auto dtype = [&](size_t input) { return binding.inputs[input]->dtype; };
  return dtype(1) == DType::kBf16 && dtype(0) == DType::kFp32 && dtype(IdsAt(scores) + 1) == DType::kFp32 &&
         TakesGate(binding) && (!binding.learns() || binding.gradients[0].scalar_type() == at::kFloat);
}

Tensors Route(const ComputeContext& context, RouteScores scores) {
  const at::Tensor &n = context.inputs[0], &gate = context.parameters[0];
  const RouteShape shape = ShapeOf(context, n, scores);
  const int64_t tokens = shape.positions * shape.samples;
  const at::Tensor logits = at::mm(AsRows(n), gate.t(), at::kFloat);
  at::Tensor bias;
  if (scores == RouteScores::kSigmoid) bias = context.parameters[1].contiguous();
  const auto wide = logits.options(), integers = wide.dtype(at::kLong);
  const at::Tensor weights = at::empty({tokens, shape.top_k}, wide), ids = at::empty({tokens, shape.top_k}, integers),
                   counts = at::zeros({shape.experts}, integers), probs = at::empty({tokens, shape.experts}, wide),
                   aux_counts = at::zeros({shape.samples, shape.experts}, integers);
  const RouteOutputs out = {Elements<float>(weights), Elements<int64_t>(ids), Elements<int64_t>(counts),
                            Elements<float>(probs), Elements<int64_t>(aux_counts)};
  LaunchRoute(Elements<float>(logits), bias.defined() ? Elements<float>(bias) : nullptr, shape, out, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {weights, ids, counts, probs, aux_counts, logits};
}

Tensors RouteGrad(const ComputeContext& context, RouteScores scores) {
  const Instruction& instruction = context.instruction;
  const size_t at = IdsAt(scores);
  const at::Tensor dweights = context.inputs[0].contiguous(), ids = context.inputs[at].contiguous(),
                   logits = context.inputs[at + 1].contiguous(), rows = AsRows(context.inputs[1]),
                   &gate = context.parameters[0];
  const RouteShape shape = ShapeOf(context, context.inputs[1], scores);
  at::Tensor aux_counts;
  double factor = 0;
  if (instruction.attributes.contains("aux_scale")) {
    aux_counts = context.inputs[at + 2].contiguous();
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

bool Replays(const ComputeContext& context) { return context.inputs.size() > 1; }

}  // namespace

bool TakesRoute(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && TakesGate(binding) && binding.parameters[1].scalar_type() == at::kFloat;
}
bool TakesRouteSoftmax(const ComputeBinding& binding) { return PlannedInBf16(binding, 1) && TakesGate(binding); }
bool TakesRouteGrad(const ComputeBinding& binding) { return TakesGrad(binding, RouteScores::kSigmoid); }
bool TakesRouteSoftmaxGrad(const ComputeBinding& binding) { return TakesGrad(binding, RouteScores::kSoftmax); }

Tensors FastRoute(const ComputeContext& context) {
  if (Replays(context) || context.inputs[0].numel() == 0) return RunRoute(context);
  return Route(context, RouteScores::kSigmoid);
}
Tensors FastRouteSoftmax(const ComputeContext& context) {
  if (Replays(context) || context.inputs[0].numel() == 0) return RunRouteSoftmax(context);
  return Route(context, RouteScores::kSoftmax);
}
Tensors FastRouteGrad(const ComputeContext& context) {
  return context.inputs[1].numel() == 0 ? RunRouteGrad(context) : RouteGrad(context, RouteScores::kSigmoid);
}
Tensors FastRouteSoftmaxGrad(const ComputeContext& context) {
  return context.inputs[1].numel() == 0 ? RunRouteSoftmaxGrad(context) : RouteGrad(context, RouteScores::kSoftmax);
}

}  // namespace planwright::executor::ops
