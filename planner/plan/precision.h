// The dtypes that follow from a plan's precision.
#pragma once

#include <string_view>

#include "planner/plan/instruction.h"

namespace planwright {

// The type of activations and of the weights that forward and backward read. `precision`: bf16, fp32 or fp64; fp32
// where it is none of these.
inline DType DTypeOf(std::string_view precision) { return DTypeFromName(precision).value_or(DType::kFp32); }

// The type of gradients, of the weights that are stepped and of their moments: never narrower than fp32.
inline DType MasterOf(DType dtype) { return dtype == DType::kFp64 ? DType::kFp64 : DType::kFp32; }

}  // namespace planwright
