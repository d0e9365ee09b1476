// The fast form of the Mamba-2 scan on a GPU (executor/kernels/mamba_scan.h). The plain form is in mamba_scan.cc.
#pragma once

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Whether the kernels take a mamba_scan or a mamba_scan_grad: bf16 on a GPU, heads of 64, a state of 128, chunks of 64
// or 128, rows of 16-byte pieces, and a GPU with enough shared memory (Hopper, not Ampere). Documents and parameter_cp
// are no obstacle.
bool KernelsTakeScan(const ComputeContext& context);
bool KernelsTakeScanGrad(const ComputeContext& context);

// Operands and results as in mamba_scan.cc.
Tensors MambaScanOnGpu(const ComputeContext& context);
Tensors MambaScanGradOnGpu(const ComputeContext& context);

}  // namespace planwright::executor::ops
