// Activations, sums, joins and slices. Inputs and outputs may have any leading dims. Each result is computed in the
// dtype of its inputs; none of these operations reduces over a dim.
//
//   squared_relu        x -> relu(x)^2; the backward reads x (docs/model/mixture_of_experts.md#shared-expert)
//   gelu                x -> GELU in its tanh form, with `erf` exact; the backward reads x
//                       (docs/model/vision_encoder.md#layers)
//   add                 x, y, ... -> their sum, added from left to right
//   add_residual_bias   x, y -> x + y + bias; the backward is bias_grad, in linear.cc
//   add_bias            x -> x + bias; the backward is bias_grad, in linear.cc
//   concat              x, y, ... -> joined along `dim`
//   split               x -> consecutive parts along `dim`, of the sizes that the outputs say
//   split_features      x -> its first `first` features, and the others; join_features is the other way round
//   local_slice         x -> this rank's part of `dim` along the axis (tp or cp), consecutive or zigzag
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>

#include "executor/base/zigzag.h"
#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// In the words of LibTorch.
const char* GeluForm(const ComputeContext& context) {
  return context.instruction.FindInteger("erf") != nullptr ? "none" : "tanh";
}

// Copies, as RunSplit makes them.
Tensors FeaturesApart(const at::Tensor& x, int64_t first) {
  const at::Tensor vectors = InVectors(x, first);
  const int64_t all = vectors.size(-1), before = first * all / x.size(-1);
  const auto part = [&](int64_t from, int64_t size) {
    return vectors.narrow(-1, from, size).clone(at::MemoryFormat::Contiguous).view(x.scalar_type());
  };
  return {part(0, before), part(before, all - before)};
}

}  // namespace

Tensors RunSquaredRelu(const ComputeContext& context) { return {context.inputs[0].relu().square_()}; }

Tensors RunSquaredReluGrad(const ComputeContext& context) {
  return {context.inputs[1].relu().mul_(2).mul_(context.inputs[0])};
}

Tensors RunGelu(const ComputeContext& context) { return {at::gelu(context.inputs[0], GeluForm(context))}; }

Tensors RunGeluGrad(const ComputeContext& context) {
  return {at::gelu_backward(context.inputs[0], context.inputs[1], GeluForm(context))};
}

Tensors RunAdd(const ComputeContext& context) {
  at::Tensor sum = context.inputs[0] + context.inputs[1];
  for (size_t i = 2; i < context.inputs.size(); ++i) sum.add_(context.inputs[i]);
  return {sum};
}

Tensors RunAddResidualBias(const ComputeContext& context) {
  return {(context.inputs[0] + context.inputs[1]).add_(context.parameters[0])};
}

Tensors RunAddBias(const ComputeContext& context) { return {context.inputs[0] + context.parameters[0]}; }

Tensors RunConcat(const ComputeContext& context) {
  return {at::cat(context.inputs, context.instruction.integer("dim"))};
}

Tensors RunSplit(const ComputeContext& context) {
  const int64_t dim = context.instruction.integer("dim");
  Tensors parts;
  int64_t at = 0;
  for (const Output& output : context.instruction.outputs) {
    const int64_t size = std::get<int64_t>(output.type.dims[static_cast<size_t>(dim)]);
    // Copies: a view would keep the memory of the whole tensor alive as long as the part, which the plan does not
    // count.
    parts.push_back(context.inputs[0].narrow(dim, at, size).clone(at::MemoryFormat::Contiguous));
    at += size;
  }
  TORCH_CHECK(at == context.inputs[0].size(dim), "the parts of ", context.inputs[0].sizes(), " along dim ", dim,
              " have ", at, " elements");
  return parts;
}

Tensors RunSplitFeatures(const ComputeContext& context) {
  return FeaturesApart(context.inputs[0], context.instruction.integer("first"));
}

Tensors RunSplitFeaturesGrad(const ComputeContext& context) { return {at::cat(context.inputs, -1)}; }

Tensors RunJoinFeatures(const ComputeContext& context) { return {at::cat(context.inputs, -1)}; }

Tensors RunJoinFeaturesGrad(const ComputeContext& context) {
  return FeaturesApart(context.inputs[0], context.instruction.integer("first"));
}

Tensors RunLocalSlice(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const std::string* axis = context.instruction.FindText("axis");
  const auto [parts, index] = context.call.CoordinateAlong(axis == nullptr ? "tp" : *axis);
  const int64_t dim = context.instruction.integer("dim");
  const int64_t* zigzag = context.instruction.FindInteger("zigzag");
  if (zigzag != nullptr && *zigzag != 0) return {ZigzagPart(x, dim, index, parts)};
  TORCH_CHECK(x.size(dim) % parts == 0, "dim ", dim, " of ", x.sizes(), " cannot be cut in ", parts, " equal parts");
  const int64_t part = x.size(dim) / parts;
  // A copy: a view would keep the memory of the whole tensor alive as long as the part, which the plan does not count.
  return {x.narrow(dim, index * part, part).clone(at::MemoryFormat::Contiguous)};
}

}  // namespace planwright::executor::ops
