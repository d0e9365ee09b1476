#include "executor/ops/fast/row_kernels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "executor/kernels/column_sums.h"

namespace planwright::executor::ops {
namespace {

void Add(const at::Tensor& partials, const Tensors& sums) {
  const bool two = sums.size() > 1;
  LaunchAddColumnSums(Elements<float>(partials), partials.size(0), Elements<float>(sums[0]), sums[0].numel(),
                      two ? Elements<float>(sums[1]) : nullptr, two ? sums[1].numel() : 0, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

at::Tensor PartialSums(const ComputeContext& context, int64_t rows, int64_t columns) {
  if (!context.learns()) return {};
  return at::empty({rows, columns}, context.gradients[0].options().dtype(at::kFloat));
}

void AddColumnSums(const ComputeContext& context, const at::Tensor& partials) {
  if (context.learns()) Add(partials, context.gradients);
}

void AddColumnSums(const ComputeContext& context, const at::Tensor& partials, const ParameterPart& own) {
  if (own.whole() || !context.learns()) return AddColumnSums(context, partials);
  Tensors parts;
  for (const at::Tensor& gradient : context.gradients) {
    std::vector<int64_t> shape = gradient.sizes().vec();
    shape[0] /= context.call.cp;
    parts.push_back(at::zeros(shape, gradient.options()));
  }
  Add(partials, parts);
  for (size_t i = 0; i < parts.size(); ++i) own.AddTo(context.gradients[i], parts[i]);
}

}  // namespace planwright::executor::ops
