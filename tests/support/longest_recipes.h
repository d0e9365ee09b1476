// The longest recipes that limits.h allows, each with one size at its limit. Their layout makes the longest plans:
// tensor parallel modules on disjoint ranks, so that bridges split leaders from siblings, with overlap and recompute.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct LongShape {
  std::string name;
  int encoders = 1, encoder_layers = 1, encoder_stages = 1;
  std::string pattern = "E";  // repeated
  int layers = 1, stages = 1;
  friend std::ostream& operator<<(std::ostream& out, const LongShape& shape) { return out << shape.name; }
};
std::vector<LongShape> LongestShapes();

// The recipe that the overrides change.
std::string LongBase();
// Overrides that make a recipe of the shape.
std::vector<std::string> LongOverrides(const LongShape& shape, int64_t microbatches);
// The largest number of microbatches of a step that limits allow.
int64_t MostMicrobatches(const LongShape& shape);

// Instructions and calls of all programs, counted with every call opened.
struct Work {
  int64_t instructions = 0, calls = 0;
};
Work WorkOf(const Plan& plan);

}  // namespace planwright::testing
