// Recipes as long as limits.h lets them be, each in another direction, with the layout and the settings that make plans
// longest: tensor parallel modules on ranks of their own, whose bridges part leaders from siblings, everything
// overlapped and run again.
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
  std::string pattern = "E";  // over and over
  int layers = 1, stages = 1;
  friend std::ostream& operator<<(std::ostream& out, const LongShape& shape) { return out << shape.name; }
};
std::vector<LongShape> LongestShapes();

// The recipe that the overrides are of.
std::string LongBase();
// Overrides that make a recipe of the shape.
std::vector<std::string> LongOverrides(const LongShape& shape, int64_t microbatches);
// The most microbatches that a step of the shape may have.
int64_t MostMicrobatches(const LongShape& shape);

// Instructions and calls of all blocks and programs, calls opened.
struct Work {
  int64_t instructions = 0, calls = 0;
};
Work WorkOf(const Plan& plan);

}  // namespace planwright::testing
