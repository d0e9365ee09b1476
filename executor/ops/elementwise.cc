// Sums, joins and slices.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

Tensors RunAdd(const ComputeContext& context) {
  at::Tensor sum = context.inputs[0] + context.inputs[1];
  for (size_t i = 2; i < context.inputs.size(); ++i) sum.add_(context.inputs[i]);
  return {sum};
}

Tensors RunAddResidualBias(const ComputeContext& context) {
  return {(context.inputs[0] + context.inputs[1]).add_(context.parameters[0])};
}

Tensors RunConcat(const ComputeContext& context) {
  return {at::cat(context.inputs, context.instruction.integer("dim"))};
}

Tensors RunLocalSlice(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const int64_t dim = context.instruction.integer("dim"), tp = context.call.tp;
  TORCH_CHECK(x.size(dim) % tp == 0, "dim ", dim, " of ", x.sizes(), " cannot be cut ", tp, " ways");
  const int64_t part = x.size(dim) / tp;
  // A copy: a view would keep the whole alive as long as the part.
  return {x.narrow(dim, context.call.tp_rank * part, part).clone(at::MemoryFormat::Contiguous)};
}

}  // namespace planwright::executor::ops
