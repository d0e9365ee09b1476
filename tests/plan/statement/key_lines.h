// The lines of a statement that say what recipes give, written again from what was read of them.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/statement/model_statement.h"

namespace planwright::testing {

// Of layers, constants and keys, each as its file has it. Their order is another one.
std::vector<std::string> KeyLines(const ModelStatement& statement);

}  // namespace planwright::testing
