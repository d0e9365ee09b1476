// The arithmetic of rotary embeddings in LibTorch's operations.
#pragma once

#include <ATen/TensorOperators.h>

#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {

// Turns the planes of `first` and `second` where they lie: parts of one tensor that do not overlap. Cosines and sines
// have the wide type.
inline void TurnPlanes(const at::Tensor& first, const at::Tensor& second, const at::Tensor& cosine,
                       const at::Tensor& sine) {
  const at::Tensor a = Wide(first), b = Wide(second);  // maybe no copies: both results come before either is written
  const at::Tensor turned = a * cosine - b * sine;
  second.copy_(b * cosine + a * sine);
  first.copy_(turned);
}

}  // namespace planwright::executor::ops
