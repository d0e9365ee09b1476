// The gradient of an embedding table by the kernel of executor/kernels/embedding.h. executor/ops/embedding.cc has the
// plain form, which defines it.
#include "executor/kernels/embedding.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sort.h>

#include <optional>

#include "executor/ops/embedding_rows.h"
#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/gpu_rows.h"
#include "executor/ops/fast/planned_types.h"

namespace planwright::executor::ops {

bool TakesEmbedTokensGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && InWholeVectors(*binding.inputs[0]) &&
         binding.gradients[0].scalar_type() == at::kFloat;
}

Tensors FastEmbedTokensGrad(const ComputeContext& context) {
  const at::Tensor &gradient = context.gradients[0], &de = context.inputs[0];
  if (!LiesInVectors(gradient) || !LiesInVectors(de)) return RunEmbedTokensGrad(context);
  const EmbeddingRows local(context, context.inputs[1], gradient.size(0));
  // A row that is not in this part of the table has the number behind the last.
  const at::Tensor rows = local.row.masked_fill(local.valid.logical_not(), gradient.size(0));
  // Stable, so that the tokens of a row are added in their order.
  const auto [sorted, numbers] = at::sort(rows.reshape({-1}), std::optional<bool>(true), 0, false);
  LaunchAddTokenRows({Elements<int64_t>(sorted), Elements<int64_t>(numbers), sorted.numel(), gradient.size(0)},
                     Elements<__nv_bfloat16>(de), de.size(-1), Elements<float>(gradient), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {};
}

}  // namespace planwright::executor::ops
