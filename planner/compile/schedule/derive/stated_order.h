// The order of instructions that a statement gives a piece (lines `order` of model_statement.h).
#pragma once

#include <string>
#include <vector>

#include "planner/compile/schedule/derive/derived_piece.h"

namespace planwright {

// Brings the steps into the order of the entries. What the grid at hand does not need has no step. A bug if a step that
// makes a value has no entry, or if it would come before a step whose value it reads.
void PutInOrder(const std::vector<std::string>& entries, const DerivedPiece& piece, std::vector<DerivedStep>& steps);

}  // namespace planwright
