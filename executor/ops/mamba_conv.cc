// Causal depthwise convolution over the x, B and C parts of zxbcdt, then SiLU (docs/model/mamba.md#convolution).
//
//   mamba_conv        zxbcdt [S,B,*] -> xbc [S,B,inner+2 bc]; parameters weight [inner+2 bc,1,w], bias [inner+2 bc]
//   mamba_conv_grad   dxbc, zxbcdt -> gradient of the x, B, C part [S,B,inner+2 bc]; adds to those of weight and bias
//
// With packed documents document_ends is the last input, and a position reads its own document only. With parameter_cp
// the features are those of this cp rank, the parameters those of all (parameter_part.h).
//
// Computed in fp32 (fp64 for fp64), the results rounded to the dtype of zxbcdt. The backward reads zxbcdt and computes
// the sum before SiLU again. The window w is short (4), so the convolution is a sum of w shifted products.
#include <ATen/TensorOperators.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "executor/ops/documents.h"
#include "executor/ops/handler.h"
#include "executor/ops/parameter_part.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// The x, B and C part of zxbcdt, [S,B,inner+2 bc]: the input of the convolution.
at::Tensor ConvolutionInput(const ComputeContext& context, const at::Tensor& zxbcdt) {
  const int64_t inner = context.instruction.integer("inner"), bc = context.instruction.integer("bc");
  return Wide(zxbcdt.narrow(2, inner, inner + 2 * bc));
}

// The weight of the input `ago` positions earlier, for each channel. The last tap belongs to the position itself.
at::Tensor Tap(const at::Tensor& weight, int64_t ago) {
  return weight.select(2, weight.size(2) - 1 - ago).select(1, 0);
}

// x | B | C, each with its own segment of the parameters.
ParameterPart SegmentsPart(const ComputeContext& context) {
  const int64_t inner = context.instruction.integer("inner"), bc = context.instruction.integer("bc");
  return ParameterPart(context, {inner, bc, bc});
}

// Which positions `ago` positions apart are in one document.
class Borders {
 public:
  // `document_ends`: null where the sequence is one document.
  Borders(const at::Tensor* document_ends, const at::Tensor& x) {
    if (document_ends != nullptr)
      document_ = DocumentOfPosition(*document_ends, x.size(0), x.device()).view({-1, 1, 1});
  }
  // `pairs` [S - ago,...] has a value for each pair of positions (t, t + ago). Zero where a document ends between them.
  at::Tensor Within(const at::Tensor& pairs, int64_t ago) const {
    if (!document_.defined()) return pairs;
    const int64_t length = pairs.size(0);
    return pairs.masked_fill(document_.narrow(0, 0, length) != document_.narrow(0, ago, length), 0);
  }

 private:
  at::Tensor document_;  // i64 [S,1,1]: its number
};

at::Tensor Convolve(const at::Tensor& x, const Borders& borders, const at::Tensor& weight, const at::Tensor& bias) {
  at::Tensor sum = (x * Tap(weight, 0)).add_(bias);
  // min: a sequence may be shorter than the window.
  for (int64_t ago = 1; ago < std::min(weight.size(2), x.size(0)); ++ago) {
    const int64_t length = x.size(0) - ago;
    sum.narrow(0, ago, length).addcmul_(borders.Within(x.narrow(0, 0, length), ago), Tap(weight, ago));
  }
  return sum;
}

const at::Tensor* DocumentsAt(const ComputeContext& context, size_t index) {
  return context.inputs.size() > index ? &context.inputs[index] : nullptr;
}

}  // namespace

Tensors RunMambaConv(const ComputeContext& context) {
  const ParameterPart own = SegmentsPart(context);
  const at::Tensor x = ConvolutionInput(context, context.inputs[0]);
  const at::Tensor sum = Convolve(x, Borders(DocumentsAt(context, 1), x), Wide(own.Of(context.parameters[0])),
                                  Wide(own.Of(context.parameters[1])));
  return {Narrow(at::silu(sum), context.inputs[0])};
}

Tensors RunMambaConvGrad(const ComputeContext& context) {
  const ParameterPart own = SegmentsPart(context);
  const at::Tensor x = ConvolutionInput(context, context.inputs[1]), weight = Wide(own.Of(context.parameters[0]));
  const Borders borders(DocumentsAt(context, 2), x);
  const at::Tensor dsum =
      at::silu_backward(Wide(context.inputs[0]), Convolve(x, borders, weight, Wide(own.Of(context.parameters[1]))));
  if (context.learns()) own.AddTo(context.gradients[1], dsum.sum(at::IntArrayRef({0, 1})));
  // The transpose: the output at a later position read this input, so its gradient flows back.
  const at::Tensor dweight = at::zeros_like(weight);
  at::Tensor dx = dsum * Tap(weight, 0);
  if (context.learns()) Tap(dweight, 0).copy_((dsum * x).sum(at::IntArrayRef({0, 1})));
  for (int64_t ago = 1; ago < std::min(weight.size(2), x.size(0)); ++ago) {
    const int64_t length = x.size(0) - ago;
    const at::Tensor later = borders.Within(dsum.narrow(0, ago, length), ago);
    dx.narrow(0, 0, length).addcmul_(later, Tap(weight, ago));
    if (context.learns()) Tap(dweight, ago).copy_((later * x.narrow(0, 0, length)).sum(at::IntArrayRef({0, 1})));
  }
  if (context.learns()) own.AddTo(context.gradients[0], dweight);
  return {Narrow(dx, context.inputs[1])};
}

}  // namespace planwright::executor::ops
