// The convolution of a Mamba layer by kernels (executor/kernels/mamba_conv.h). executor/ops/mamba_conv.cc has the plain
// form, which defines it. Documents and parameter_cp are no obstacle.
#include "executor/kernels/mamba_conv.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/base/tensors.h"
#include "executor/ops/documents.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kWindow = 4;

// The shape, and the ends of documents in the device's memory.
struct Convolution {
  ConvolutionShape shape;
  at::Tensor document_ends;

  // zxbcdt is input `index`; behind it are the ends of documents, if there are any.
  Convolution(const ComputeContext& context, size_t index) {
    const at::Tensor& zxbcdt = context.inputs[index];
    const int64_t inner = context.instruction.integer("inner"), bc = context.instruction.integer("bc");
    shape = {.positions = zxbcdt.size(0),
             .samples = zxbcdt.size(1),
             .features = zxbcdt.size(2),
             .first = inner,
             .channels = inner + 2 * bc};
    if (context.inputs.size() == index + 1) return;
    const at::Tensor& ends = context.inputs[index + 1];
    shape.documents = static_cast<int64_t>(DocumentEnds(ends, shape.positions).size());  // checks them
    document_ends = ToDevice(ends.contiguous(), zxbcdt.device());
    shape.document_ends = Elements<int64_t>(document_ends);
  }
};

// Each segment of the features by itself.
ParameterPart FeaturePart(const ComputeContext& context) {
  const int64_t inner = context.instruction.integer("inner"), bc = context.instruction.integer("bc");
  return ParameterPart(context, {inner, bc, bc});
}

// Widths are of whole vectors of 8 bytes.
bool TakesConvolution(const ComputeBinding& binding, const ValueType& zxbcdt) {
  const at::Tensor& weight = binding.parameters[0];
  const int64_t inner = binding.instruction.integer("inner"), bc = binding.instruction.integer("bc");
  const int64_t positions = PlannedSize(zxbcdt, 0), samples = PlannedSize(zxbcdt, 1), features = PlannedSize(zxbcdt, 2);
  return InBf16Elements(weight) && InBf16Elements(binding.parameters[1]) && weight.size(2) == kWindow &&
         inner % 4 == 0 && 2 * bc % 4 == 0 && features > 0 && features % 4 == 0 && positions >= 0 &&
         positions <= kMostPositions && samples >= 0 && samples <= kMostSamples;
}

}  // namespace

bool TakesMambaConv(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && TakesConvolution(binding, *binding.inputs[0]);
}

bool TakesMambaConvGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && TakesConvolution(binding, *binding.inputs[1]);
}

Tensors FastMambaConv(const ComputeContext& context) {
  if (!LieInVectors(context, 1)) return RunMambaConv(context);
  const at::Tensor& zxbcdt = context.inputs[0];
  const ParameterPart own = FeaturePart(context);
  const Convolution convolution(context, 0);
  const ConvolutionShape& shape = convolution.shape;
  const at::Tensor weight = own.Of(context.parameters[0]), bias = own.Of(context.parameters[1]);
  const at::Tensor xbc = at::empty({shape.positions, shape.samples, shape.channels}, zxbcdt.options());
  using Bf16 = __nv_bfloat16;
  LaunchConvolution(Elements<Bf16>(zxbcdt), Elements<Bf16>(weight), Elements<Bf16>(bias), Elements<Bf16>(xbc), shape,
                    CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {xbc};
}

Tensors FastMambaConvGrad(const ComputeContext& context) {
  if (!LieInVectors(context, 2)) return RunMambaConvGrad(context);
  const at::Tensor &dxbc = context.inputs[0], &zxbcdt = context.inputs[1];
  const ParameterPart own = FeaturePart(context);
  const Convolution convolution(context, 1);
  const ConvolutionShape& shape = convolution.shape;
  const at::Tensor weight = own.Of(context.parameters[0]), bias = own.Of(context.parameters[1]);
  const at::Tensor dpart = at::empty_like(dxbc);
  const at::Tensor partials = PartialSums(context, ConvolutionPartials(shape), (kWindow + 1) * shape.channels);
  using Bf16 = __nv_bfloat16;
  LaunchConvolutionGradient(Elements<Bf16>(dxbc), Elements<Bf16>(zxbcdt), Elements<Bf16>(weight), Elements<Bf16>(bias),
                            Elements<Bf16>(dpart), ElementsOrNull(partials), shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(context, partials, own);
  return {dpart};
}

}  // namespace planwright::executor::ops
