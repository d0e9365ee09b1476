// What a test compares of found problems.
#pragma once

#include <string>
#include <vector>

#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

// "GridDoesNotFit:102": kinds and lines, sorted by location.
inline std::vector<std::string> KindsAndLines(const Diagnostics& diagnostics) {
  std::vector<std::string> found;
  for (const Diagnostic& d : diagnostics.sorted())
    found.push_back(std::string(KindName(d.kind)) + ":" + std::to_string(d.where.line));
  return found;
}

}  // namespace planwright
