// What the deriver of blocks (compile/schedule/derive) asks of the computes of a piece on any layout, and of the values
// that their lines name: checked of the lines alone, whatever sizes are.
#pragma once

#include <string>

#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/problem_list.h"
#include "planner/plan/statement/stated_names.h"

namespace planwright {

// `name`: of the piece ("embed", "M").
void CheckComputes(const ModelStatement& statement, const std::string& name, const StatedPiece& piece,
                   const StatedNames& names, ProblemList& problems);

}  // namespace planwright
