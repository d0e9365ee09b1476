// Reads the dialects at the end of a text, in the notation that dialect.h explains.
#pragma once

#include <string_view>
#include <vector>

#include "planner/state/dialect/dialect.h"

namespace planwright {

struct ParsedDialects {
  std::vector<Dialect> dialects;  // of no use but to find more problems if there is one
  std::vector<DialectRefusal> refused;
  TextProblems problems;  // at most one of each line, in the order of the lines
};

// The lines from the first one on that begins with `dialect`. `statement`: what the lines before say. What is wrong
// with dialects together, DialectProblems finds.
ParsedDialects ParseDialects(std::string_view file, std::string_view text, const ModelStatement& statement);

}  // namespace planwright
