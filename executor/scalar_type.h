// LibTorch's name of a plan's dtype.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "planner/plan/instruction.h"

namespace planwright::executor {

inline at::ScalarType ScalarTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt64: return at::kLong;
    case DType::kFp32: return at::kFloat;
    case DType::kFp64: return at::kDouble;
    case DType::kBf16: return at::kBFloat16;
  }
  TORCH_CHECK(false, "unknown dtype");
}

}  // namespace planwright::executor
