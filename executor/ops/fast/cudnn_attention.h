// Attention by cuDNN's kernel, which LibTorch calls: bf16 on GPUs. It is a third faster than LibTorch's flash kernel,
// with two reservations. The order in which it adds to dq is not fixed. And cuDNN compiles a program for each shape,
// which takes a tenth of a second or more: the caller takes it where few shapes occur in a run.
#pragma once

#include "executor/ops/fast/flash_operands.h"

namespace planwright::executor::ops {

// Whether library, device and sizes allow it, and whether the order of additions is free. x is bf16 on a GPU.
bool TakesCudnn(const FlashOperands& x);

// Every query of a sequence attends to every key, or if `causal` to those up to its own position.
FlashResult CudnnForward(const FlashOperands& x, bool causal);

// da has the strides of forward.a: LibTorch keeps the program of the first call with these strides of q, k and v.
FlashGradients CudnnBackward(const FlashOperands& x, bool causal, const at::Tensor& da, const FlashResult& forward);

}  // namespace planwright::executor::ops
