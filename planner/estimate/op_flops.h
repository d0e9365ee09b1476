// Floating-point operations of one instruction, a multiply-add as two: matrix products, attention scores and the scan
// (docs/flops.md).
#pragma once

#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// `shapes`: of the inputs, then of the outputs, with numbers for run-time sizes; an unknown one is empty. `image_rows`:
// rows of the image that a packed row lies in, on average over rows, class tokens left out. 0 for instructions that are
// not counted.
double OpFlops(const Instruction& instruction, const std::vector<std::vector<double>>& shapes, double image_rows);

}  // namespace planwright
