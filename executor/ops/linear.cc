// Linear layers, whose weight is [o,i] as published.
//
//   linear               x [...,i] -> y [...,o] = x W^T (+ bias); parameters weight [o,i], optional bias [o]
//   linear_input_grad    dy [...,o] -> dx [...,i] = dy W
//   linear_weight_grad   dy, x -> nothing; adds dy^T x to the gradient of weight, and the sum of dy to that of bias.
//                        The first of a step writes the gradient (ComputeContext::writes_gradients)
//   add_linear           y [...,o], l [...,r] -> z = y, with scale l W^T added to `width` of its features, from `first`
//                        on
//   bias_grad            dy [...,o] -> nothing; adds the sum of dy to the gradient of a bias, of add_residual_bias or
//                        add_bias
//
// Products of activations have the dtype of their inputs, with sums inside the product in fp32 at least. Gradients are
// added in the dtype of the gradient buffer (the master dtype). The backward is two instructions because a plan may
// leave one of them out: a frozen weight needs no gradient, and a first layer has no use for that of its input.
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {

Tensors RunLinear(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const at::Tensor& weight = context.parameters[0];
  const auto shaped = [&](const at::Tensor& y) { return y.view(WithWidth(x, weight.size(0))); };
  if (context.parameters.size() == 1) return {shaped(at::mm(AsRows(x), weight.t()))};
  const at::Tensor& bias = context.parameters[1];
  // cuBLAS adds the bias before it rounds, in the same pass.
  if (x.is_cuda()) return {shaped(at::addmm(bias, AsRows(x), weight.t()))};
  return {shaped(at::mm(AsRows(x), weight.t()).add_(bias))};
}

Tensors RunLinearInputGrad(const ComputeContext& context) {
  const at::Tensor& dy = context.inputs[0];
  const at::Tensor& weight = context.parameters[0];
  return {at::mm(AsRows(dy), weight).view(WithWidth(dy, weight.size(1)))};
}

Tensors RunLinearWeightGrad(const ComputeContext& context) {
  const at::Tensor dy = AsRows(context.inputs[0]);
  const at::Tensor x = AsRows(context.inputs[1]);
  if (context.writes_gradients) {
    SetProduct(context.gradients[0], dy.t(), x);
    return {};
  }
  AddProduct(context.gradients[0], dy.t(), x);
  if (context.gradients.size() > 1) context.gradients[1].add_(dy.sum(0, false, WideType(dy)));
  return {};
}

namespace {

// The features of rows that a product is added to: those of the attributes first and width.
at::Tensor AddedPart(const at::Tensor& rows, const Instruction& instruction) {
  const int64_t* first = instruction.FindInteger("first");
  return rows.narrow(1, first ? *first : 0, instruction.integer("width"));
}

}  // namespace

Tensors RunAddLinear(const ComputeContext& context) {
  const at::Tensor z = context.OutputOver(0);
  if (!context.overwrites) z.copy_(context.inputs[0]);
  at::Tensor part = AddedPart(z.view(AsRows(z).sizes()), context.instruction);
  part.addmm_(AsRows(context.inputs[1]), context.parameters[0].t(), 1, context.instruction.real("scale"));
  return {z};
}

Tensors RunAddLinearInputGrad(const ComputeContext& context) {
  const at::Tensor& dz = context.inputs[0];
  const at::Tensor& weight = context.parameters[0];
  const at::Tensor dl = at::mm(AddedPart(AsRows(dz), context.instruction), weight);
  return {dl.mul_(context.instruction.real("scale")).view(WithWidth(dz, weight.size(1)))};
}

Tensors RunAddLinearWeightGrad(const ComputeContext& context) {
  const at::Tensor dz = AddedPart(AsRows(context.inputs[0]), context.instruction);
  // The scale is on the thin factor.
  AddProduct(context.gradients[0], dz.t(), AsRows(context.inputs[1]) * context.instruction.real("scale"));
  return {};
}

Tensors RunBiasGrad(const ComputeContext& context) {
  const at::Tensor dy = AsRows(context.inputs[0]);
  context.gradients[0].add_(dy.sum(0, false, WideType(dy)));
  return {};
}

}  // namespace planwright::executor::ops
