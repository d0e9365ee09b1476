// Reads the text of a statement, in the notation that model_statement.h explains.
#pragma once

#include <string_view>

#include "planner/plan/statement/model_statement.h"

namespace planwright {

struct ParsedStatement {
  ModelStatement statement;  // not to be used if there is a problem
  TextProblems problems;     // at most one of each line, in the order of the lines
};

// Takes any text. `file`: what messages call it. A statement without a problem may still be one of no model: see
// statement_problems.h.
ParsedStatement ParseStatement(std::string_view kind, std::string_view file, std::string_view text);

}  // namespace planwright
