// What the lines `order` of a piece must have on any layout: each compute, behind what it reads, and no other values
// than those of the piece. Communications come of the layout, so that nothing is known of them here.
#pragma once

#include <string>

#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/problem_list.h"

namespace planwright {

// `name`: of the piece.
void CheckOrders(const std::string& name, const StatedPiece& piece, ProblemList& problems);

}  // namespace planwright
