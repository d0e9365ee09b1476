// What both forms of the axial rotary embedding share. axial_rope.cc describes the operations.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// The row of each patch of this rank's part in its image, and behind them the column of each.
std::vector<int64_t> PatchPlaces(const ComputeContext& context);

// How fast the planes turn, in radians for each row: those of columns turn alike.
std::vector<double> AxialSpeeds(const Instruction& instruction);

}  // namespace planwright::executor::ops
