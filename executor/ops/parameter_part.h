// Parameters of operations between the two all-to-alls of a Mamba layer (docs/layouts/sequence.md#context-parallelism).
// There features are cut over tp and cp, but parameters over tp alone: a cp coordinate uses its part of them. Attribute
// parameter_cp of the instruction; without it the part is the whole parameter.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

class ParameterPart {
 public:
  // `segments`: this rank's features of each segment (x, B and C) along dim 0 of the parameter. A segment is cut by
  // itself: the parameter has parameter_cp such pieces of the first segment, then of the second, and so on.
  ParameterPart(const ComputeContext& context, std::vector<int64_t> segments);

  // Whether the part is the whole parameter.
  bool whole() const { return coordinates_ == 1; }
  at::Tensor Of(const at::Tensor& parameter) const;
  // Adds the gradient of the part to that of the whole parameter.
  void AddTo(const at::Tensor& gradient, const at::Tensor& part) const;

 private:
  const std::vector<int64_t> segments_;
  int64_t coordinates_ = 1, coordinate_ = 0;
};

}  // namespace planwright::executor::ops
