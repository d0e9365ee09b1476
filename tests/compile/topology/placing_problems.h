// Collects what PlaceModules reports.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/compile/topology/place_modules.h"
#include "tests/support/problems.h"

namespace planwright::testing {

// "GridDoesNotFit:102" for each problem. Every problem must have a help.
inline std::vector<std::string> ProblemsOf(const Recipe& recipe) {
  Diagnostics diagnostics;
  const auto grids = GridsOf(PlaceModules(recipe, diagnostics));
  EXPECT_EQ(grids.has_value(), !diagnostics.has_errors());
  for (const Diagnostic& d : diagnostics.sorted()) EXPECT_FALSE(d.help.empty()) << d.message;
  return KindsAndLines(diagnostics);
}

}  // namespace planwright::testing
