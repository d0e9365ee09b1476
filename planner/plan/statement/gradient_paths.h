// Whether what the trained weights of a piece make leads to the loss, so that their gradients come back.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/problem_list.h"
#include "planner/plan/statement/rank_piece.h"

namespace planwright {

// Tells slots of weights whose gradient nothing would make. `name`: of the piece. `computes`: those of one case.
void CheckGradientPaths(const std::string& name, const StatedPiece& piece,
                        const std::vector<RankPiece::Compute>& computes, ProblemList& problems);

}  // namespace planwright
