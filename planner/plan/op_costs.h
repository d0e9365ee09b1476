// What one instruction costs, by the formulas of ops.def on operands of given shapes: dims of its inputs, then of its
// outputs. The shape of an operand that is not known is empty.
#pragma once

#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// Floating-point operations, a multiply-add counted as two: matrix products, attention scores and the scan
// (docs/flops.md). 0 for kinds without a formula. `image_rows`: rows of the image that a packed row lies in, on average
// over rows, without class tokens. `document_share`: of the scores of a whole sample, those within its documents; 1
// for model FLOPs, which count whole samples.
double OpFlops(const Instruction& instruction, const std::vector<std::vector<double>>& shapes, double image_rows,
               double document_share);
// Whether the FLOPs of a kind follow document_share: attention that ends where a document ends.
bool FlopsFollowDocuments(OpKind kind);

// Bytes of temporary tensors on a GPU in bf16 (ops.def, workspace). 0 for kinds without a formula. `deterministic`: of
// a run with precision.deterministic.
double OpWorkspace(const Instruction& instruction, const std::vector<std::vector<double>>& shapes, bool deterministic);

}  // namespace planwright
