#include "executor/ops/embedding_on_gpu.h"

#include <ATen/ops/sort.h>

#include "executor/kernels/embedding.h"
#include "executor/ops/cuda_operands.h"

namespace planwright::executor::ops {

bool TakesTokenRowsKernel(const at::Tensor& gradient, const at::Tensor& de) {
  const auto aligned = [](const at::Tensor& x) { return reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0; };
  return OnGpuInBf16(de) && gradient.scalar_type() == at::kFloat && gradient.is_contiguous() && aligned(gradient) &&
         de.is_contiguous() && aligned(de) && de.size(-1) % 8 == 0;
}

void AddTokenRowsOnGpu(const at::Tensor& gradient, const at::Tensor& rows, const at::Tensor& de) {
  // Stable, so that the tokens of a row are added in their order.
  const auto [sorted, numbers] = at::sort(rows.reshape({-1}), std::optional<bool>(true), 0, false);
  LaunchAddTokenRows({Elements<int64_t>(sorted), Elements<int64_t>(numbers), sorted.numel(), gradient.size(0)},
                     Elements<__nv_bfloat16>(de), de.size(-1), Elements<float>(gradient), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace planwright::executor::ops
