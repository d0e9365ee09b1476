// Causal attention by LibTorch's flash kernel: bf16 on GPUs. causal_attention.cc has the plain form, which defines it.
#pragma once

#include <vector>

#include "executor/ops/fast/flash_operands.h"
#include "executor/ops/query_spans.h"

namespace planwright::executor::ops {

// q is of this rank, k and v are of the whole sequence.
FlashResult FlashForward(const FlashOperands& x, const std::vector<QueryChunk>& chunks);

// dk and dv are of the whole sequence: the terms of this rank's queries.
FlashGradients FlashBackward(const FlashOperands& x, const std::vector<QueryChunk>& chunks, const at::Tensor& da,
                             const FlashResult& forward);

}  // namespace planwright::executor::ops
