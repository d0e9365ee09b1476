// Reads the lines of a statement that say what a first recipe (`plan init`) has for an encoder: the name of its module,
// how images are made, and keys that its folder leaves open.
#pragma once

#include "planner/plan/statement/model_statement.h"

namespace planwright {

// What stands behind `first`. `model` has the lines before it, and gets what is read.
void ParseFirst(LineReader& line, ModelStatement& model);

}  // namespace planwright
