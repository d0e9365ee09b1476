// Reads the text of a statement, in the notation that model_statement.h explains.
#pragma once

#include <string_view>

#include "planner/plan/statement/model_statement.h"

namespace planwright {

// A line that is none is a bug, which names the line: texts are part of the program.
ModelStatement ParseStatement(std::string_view kind, std::string_view text);

}  // namespace planwright
