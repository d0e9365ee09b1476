// Numbers of one type as another: a pure function of the bytes.
#pragma once

#include <cstddef>
#include <span>

#include "planner/plan/instruction.h"

namespace planwright {

// `from` and `to` hold the same number of elements of bf16, fp32 or fp64. To a narrower type each number is rounded to
// the nearest, ties to even, once. What is too large becomes infinite.
void ConvertNumbers(DType from_type, std::span<const std::byte> from, DType to_type, std::span<std::byte> to);

}  // namespace planwright
