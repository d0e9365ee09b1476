// Cross entropy by the kernels of executor/kernels/cross_entropy.h. executor/ops/cross_entropy.cc has the plain forms,
// which define it.
#include "executor/kernels/cross_entropy.h"

#include <ATen/ops/empty.h>

#include <limits>

#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/gpu_rows.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/vocabulary_part.h"

namespace planwright::executor::ops {
namespace {

Logits LogitsOf(const ComputeContext& context) {
  const at::Tensor& logits = context.inputs[0];
  return {Elements<__nv_bfloat16>(logits), logits.size(0), logits.size(1), static_cast<int>(logits.size(2)),
          static_cast<int>(IdsOf(context, logits.size(2)))};
}

// Labels and mask are read where they lie: they may be a cut of a longer sequence.
void CheckTokens(const at::Tensor& tokens, const at::Tensor& logits, at::ScalarType type) {
  TORCH_CHECK(tokens.is_cuda() && tokens.scalar_type() == type && tokens.dim() == 2 &&
                  tokens.size(0) == logits.size(1) && tokens.size(1) == logits.size(0),
              "logits ", logits.sizes(), " take ", type, " of [samples, positions] on a GPU, not ", tokens.toString(),
              " ", tokens.sizes());
}

TokenLabels LabelsOf(const ComputeContext& context, const at::Tensor& labels) {
  const at::Tensor& logits = context.inputs[0];
  CheckTokens(labels, logits, at::kLong);
  return {{labels.const_data_ptr<int64_t>(), labels.stride(0), labels.stride(1)},
          context.call.tp_rank * logits.size(2)};
}

bool TakesLogits(const ComputeBinding& binding) {
  const ValueType& logits = *binding.inputs[0];
  return logits.dtype == DType::kBf16 && InWholeVectors(logits) &&
         PlannedWidth(logits) <= std::numeric_limits<int>::max();
}

bool LieForKernels(const at::Tensor& logits) { return LiesInVectors(logits) && logits.numel() > 0; }

}  // namespace

bool TakesCrossEntropyParts(const ComputeBinding& binding) { return TakesLogits(binding); }
bool TakesCrossEntropySums(const ComputeBinding& binding) { return binding.inputs[0]->dtype == DType::kFp32; }
bool TakesCrossEntropyGrad(const ComputeBinding& binding) {
  return TakesLogits(binding) && binding.inputs[1]->dtype == DType::kFp32 && binding.inputs[2]->dtype == DType::kFp32;
}

Tensors FastCrossEntropyParts(const ComputeContext& context) {
  const at::Tensor& logits = context.inputs[0];
  if (!LieForKernels(logits)) return RunCrossEntropyParts(context);
  const at::TensorOptions wide = logits.options().dtype(at::kFloat);
  const at::Tensor m = at::empty({logits.size(0), logits.size(1)}, wide),
                   parts = at::empty({4, logits.size(0), logits.size(1)}, wide);
  LaunchLogitParts(LogitsOf(context), LabelsOf(context, context.inputs[1]), Elements<float>(m), Elements<float>(parts),
                   CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {m, parts};
}

Tensors FastCrossEntropySums(const ComputeContext& context) {
  if (context.inputs[0].numel() == 0) return RunCrossEntropySums(context);
  const at::Tensor parts = context.inputs[0].contiguous(), m = context.inputs[1].contiguous();
  const at::Tensor sums = at::empty({2, m.size(0), m.size(1)}, m.options());
  LaunchSumsOfParts(Elements<float>(parts), Elements<float>(m), m.numel(), Elements<float>(sums), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {sums};
}

Tensors FastCrossEntropyGrad(const ComputeContext& context) {
  if (!LieForKernels(context.inputs[0])) return RunCrossEntropyGrad(context);
  const at::Tensor &logits = context.inputs[0], m = context.inputs[1].contiguous(),
                   sums = context.inputs[2].contiguous(), mask = context.inputs[4].to(at::kFloat);
  CheckTokens(mask, logits, at::kFloat);
  const at::Tensor dlogits = context.OutputOver(0);
  LaunchLogitGradients(LogitsOf(context), Elements<float>(m), Elements<float>(sums),
                       LabelsOf(context, context.inputs[3]),
                       {mask.const_data_ptr<float>(), mask.stride(0), mask.stride(1)}, Elements<__nv_bfloat16>(dlogits),
                       CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {dlogits};
}

}  // namespace planwright::executor::ops
