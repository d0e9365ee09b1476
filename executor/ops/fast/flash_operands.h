// What the kernels take and give that never write the scores of attention to memory: LibTorch's and cuDNN's.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor::ops {

// Heads of one call, [batch, positions, heads, head_dim], in any strides with 1 as the last.
struct FlashOperands {
  at::Tensor q, k, v;
  double scale = 1;
};

// a of the shape of q; lse [batch, heads, queries], fp32.
struct FlashResult {
  at::Tensor a, lse;
};

// They have the shapes of q, k and v.
struct FlashGradients {
  at::Tensor dq, dk, dv;
};

}  // namespace planwright::executor::ops
