// The transposes of what only moves values: of the collectives and slices that conversions are, and of split.
#pragma once

#include <optional>
#include <vector>

#include "planner/compile/schedule/derive/derived_piece.h"

namespace planwright {

// The instruction that makes the gradient of the step's first input from those of its outputs, which have come. Without
// outputs. An all_reduce has none: the gradient of a sum is that of each term.
DerivedStep TransposeOf(const DerivedPiece& piece, const DerivedStep& forward,
                        const std::vector<std::optional<size_t>>& gradients);

}  // namespace planwright
