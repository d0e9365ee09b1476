// What fast forms ask of planned types.
#pragma once

#include <cstdint>
#include <optional>

#include "executor/ops/forms.h"

namespace planwright::executor::ops {

// Whether the first `count` inputs are planned in bf16.
inline bool PlannedInBf16(const ComputeBinding& binding, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (binding.inputs.at(i)->dtype != DType::kBf16) return false;
  }
  return true;
}

// Whether LibTorch's flash kernel and cuDNN's have heads of this size.
inline bool FlashTakesHeads(const ComputeBinding& binding) {
  const int64_t head_dim = binding.instruction.integer("head_dim");
  return head_dim % 8 == 0 && head_dim <= 256;
}

// A planned size; -1: it is known at run time only.
inline int64_t PlannedSize(const Dim& dim) {
  const auto* size = std::get_if<int64_t>(&dim);
  return size == nullptr ? -1 : *size;
}
inline int64_t PlannedSize(const ValueType& type, size_t dim) { return PlannedSize(type.dims.at(dim)); }

// The size of the last dim.
inline int64_t PlannedWidth(const ValueType& type) { return PlannedSize(type.dims.back()); }

// Whether the last dim has a planned size of whole vectors of 16 bytes of bf16.
inline bool InWholeVectors(const ValueType& type) { return PlannedWidth(type) > 0 && PlannedWidth(type) % 8 == 0; }

// The product of the sizes; none: one of them is known at run time only.
inline std::optional<int64_t> PlannedElements(const ValueType& type) {
  int64_t elements = 1;
  for (const Dim& dim : type.dims) {
    if (PlannedSize(dim) < 0) return std::nullopt;
    elements *= PlannedSize(dim);
  }
  return elements;
}

}  // namespace planwright::executor::ops
