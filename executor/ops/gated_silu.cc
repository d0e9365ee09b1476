// The gate of a gated MLP (docs/model/decoder.md#gated-mlp): the features of gu are a gate and then as many others.
//
//   gated_silu        gu [...,2 width] -> h [...,width] = silu(gate) * rest
//   gated_silu_grad   dh, gu -> dgu
//
// Computed in fp32 (fp64 for fp64), and rounded once to the dtype of gu.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

struct GateAndRest {
  at::Tensor gate, rest;
  GateAndRest(const ComputeContext& context, const at::Tensor& gu) {
    const int64_t width = context.instruction.integer("width");
    TORCH_CHECK(gu.size(-1) == 2 * width, "features of ", gu.sizes(), " for a gate of ", width);
    gate = Wide(gu.narrow(-1, 0, width)), rest = Wide(gu.narrow(-1, width, width));
  }
};

}  // namespace

Tensors RunGatedSilu(const ComputeContext& context) {
  const GateAndRest parts(context, context.inputs[0]);
  return {Narrow((parts.gate * parts.gate.sigmoid()).mul_(parts.rest), context.inputs[0])};
}

Tensors RunGatedSiluGrad(const ComputeContext& context) {
  const GateAndRest parts(context, context.inputs[1]);
  const at::Tensor dh = Wide(context.inputs[0]), share = parts.gate.sigmoid();
  const at::Tensor slope = share * (parts.gate * (1 - share) + 1);  // of silu
  return {Narrow(at::cat({dh * parts.rest * slope, dh * parts.gate * share}, -1), context.inputs[1])};
}

}  // namespace planwright::executor::ops
