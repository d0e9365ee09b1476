// Reads the text of a statement, in the notation that model_statement.h explains.
#pragma once

#include <string_view>

#include "planner/plan/statement/model_statement.h"

namespace planwright {

struct ParsedStatement {
  ModelStatement statement;  // of no use but to find more problems if there is one
  TextProblems problems;     // at most one of each line, in the order of the lines
};

// Takes any text. `file`: what messages call it. What is wrong with the lines together, StatementProblems finds, as far
// as lines could be read.
ParsedStatement ParseStatement(std::string_view file, std::string_view text);

}  // namespace planwright
