// What is wrong with dialects that were read, taken together: names that do not exist, keys that no line gives.
#pragma once

#include "planner/plan/table_text.h"
#include "planner/state/dialect/dialect.h"

namespace planwright {

// `statements`: of each kind that a dialect is of, by its name.
using StatementFinder = const ModelStatement* (*)(std::string_view kind);

TextProblems DialectProblems(const DialectSet& dialects, StatementFinder statement_of = StatementOf);

}  // namespace planwright
