// The logged numbers about routing on a GPU, in one or two kernels each. executor/ops/routing_statistics.cc describes
// operands and results.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// c10::Error unless probs are fp32 on a GPU.
Tensors SequenceAuxLossOnGpu(const ComputeContext& context);

// For ids on a GPU.
Tensors RoutingFingerprintOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
