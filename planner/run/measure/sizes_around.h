// With which other sizes a recipe is measured (docs/measure.md#what-is-measured).
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Sizes around those of a plan, and other surroundings, each as overrides of its recipe: sequences of twice and half
// the length, twice the samples of a microbatch, and communications beside work, or, where the plan has some, none. Not
// all of them need to compile.
std::vector<std::vector<std::string>> SizesAround(const Plan& plan);

}  // namespace planwright
