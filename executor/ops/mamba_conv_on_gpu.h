// The convolution of a Mamba layer by kernels (executor/kernels/mamba_conv.h). mamba_conv.cc has the plain form, which
// defines it. Only files of the CUDA build include this.
#pragma once

#include "executor/ops/handler.h"
#include "executor/ops/parameter_part.h"

namespace planwright::executor::ops {

// Whether the kernels can run mamba_conv or mamba_conv_grad: bf16, a window of four positions, and widths of whole
// vectors. zxbcdt is input `index`, and the tensors before it have its dtype.
bool TakesMambaConv(const ComputeContext& context, size_t index);

// `own`: this rank's part of the parameters.
Tensors MambaConvOnGpu(const ComputeContext& context, const ParameterPart& own);
Tensors MambaConvGradOnGpu(const ComputeContext& context, const ParameterPart& own);

}  // namespace planwright::executor::ops
