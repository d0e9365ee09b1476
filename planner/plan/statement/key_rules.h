// What the lines that say what recipes give (layers, sections, keys) must keep together.
#pragma once

#include "planner/plan/statement/model_statement.h"
#include "planner/plan/statement/problem_list.h"
#include "planner/plan/statement/stated_names.h"

namespace planwright {

// Where the text of a statement begins: what is absent has no other place.
Location BeginOf(const ModelStatement& statement);

void CheckKeys(const ModelStatement& statement, const StatedNames& names, ProblemList& problems);

}  // namespace planwright
