// A linear layer and the residual sum or the gelu behind it as one product (blas_product.h), and the backward of a
// layer with that of the gelu before it. What is never written is not rounded.
#include <algorithm>

#include "executor/ops/fast/blas_product.h"
#include "executor/ops/fast/joined_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"

namespace planwright::executor::ops {
namespace {

bool TakesSum(const ComputeBinding& linear, const ComputeBinding& sum) {
  return PlannedInBf16(linear, 1) && PlannedInBf16(sum, 2) && sum.inputs[0]->dims == sum.inputs[1]->dims &&
         InWholeVectors(*linear.inputs[0]) && InWholeVectors(*sum.inputs[0]) && InBf16Elements(linear.parameters[0]);
}

// `bias`: of either of them; undefined: neither has one.
Tensors LinearAndSum(const ComputeContext& linear, ComputeHandler sum_form, const ComputeContext& sum,
                     const at::Tensor& bias) {
  const at::Tensor &x = linear.inputs[0], &weight = linear.parameters[0], &residual = sum.inputs[1 - PlaceOfFirst(sum)];
  const bool lie_well =
      LiesInVectors(x) && LiesInVectors(weight) && LiesInVectors(residual) && (!bias.defined() || LiesInVectors(bias));
  if (!lie_well || x.numel() == 0) return OneByOne(RunLinear, linear, sum_form, sum);
  return {SummedProduct(x, weight, residual, bias)};
}

}  // namespace

bool TakesLinearWithAdd(const ComputeBinding& linear, const ComputeBinding& sum) {
  return TakesSum(linear, sum) && (linear.parameters.size() == 1 || InBf16Elements(linear.parameters[1]));
}

// A product adds one bias.
bool TakesLinearWithAddResidualBias(const ComputeBinding& linear, const ComputeBinding& sum) {
  return TakesSum(linear, sum) && linear.parameters.size() == 1 && InBf16Elements(sum.parameters[0]);
}

bool TakesLinearWithGelu(const ComputeBinding& linear, const ComputeBinding& gelu) {
  return PlannedInBf16(linear, 1) && PlannedInBf16(gelu, 1) && InWholeVectors(*gelu.inputs[0]) &&
         InWholeVectors(*linear.inputs[0]) &&
         std::all_of(linear.parameters.begin(), linear.parameters.end(), InBf16Elements);
}

Tensors FastLinearWithGelu(const ComputeContext& linear, const ComputeContext& gelu) {
  const at::Tensor& x = linear.inputs[0];
  const bool lie_well = LiesInVectors(x) && std::all_of(linear.parameters.begin(), linear.parameters.end(),
                                                        [](const at::Tensor& each) { return LiesInVectors(each); });
  if (!lie_well || x.numel() == 0) return OneByOne(RunLinear, linear, RunGelu, gelu);
  const GeluOfProduct made =
      ProductAndGelu(x, linear.parameters[0], linear.parameters.size() > 1 ? linear.parameters[1] : at::Tensor());
  return {made.pre, made.gelu};
}

// The gradient of the product has the width of what gelu read.
bool TakesLinearInputGradWithGeluGrad(const ComputeBinding& product, const ComputeBinding& gelu) {
  return PlannedInBf16(product, 1) && PlannedInBf16(gelu, 2) && gelu.inputs[0]->dims == gelu.inputs[1]->dims &&
         InWholeVectors(*gelu.inputs[0]) && InWholeVectors(*product.inputs[0]) && InBf16Elements(product.parameters[0]);
}

Tensors FastLinearInputGradWithGeluGrad(const ComputeContext& product, const ComputeContext& gelu) {
  const at::Tensor &dy = product.inputs[0], &weight = product.parameters[0], &pre = gelu.inputs[1];
  if (!LiesInVectors(dy) || !LiesInVectors(weight) || !LiesInVectors(pre) || dy.numel() == 0)
    return OneByOne(RunLinearInputGrad, product, RunGeluGrad, gelu);
  return {ProductTimesGeluSlope(dy, weight, pre)};
}

Tensors FastLinearWithAdd(const ComputeContext& linear, const ComputeContext& sum) {
  return LinearAndSum(linear, RunAdd, sum, linear.parameters.size() == 1 ? at::Tensor() : linear.parameters[1]);
}

Tensors FastLinearWithAddResidualBias(const ComputeContext& linear, const ComputeContext& sum) {
  return LinearAndSum(linear, RunAddResidualBias, sum, sum.parameters[0]);
}

}  // namespace planwright::executor::ops
