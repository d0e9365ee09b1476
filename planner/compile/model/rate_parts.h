// Rates by part (docs/training/step.md#rates-by-part): which parameters each part of `optimizer.parts` has.
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Every part must match parameters that no part before it matches: one that matches none is told with what was probably
// meant (PW0108), one whose parameters all are in parts before it with those (PW0109). So is a weight decay of norms
// and biases alone (PW0109). Warnings (PW0112) for a part of frozen parameters, and
// if all that is stepped has the learning rate 0. `known`: of each module, whether it
// passed the checks of its model; the others are left out, and what they might have is not told as missing.
void CheckRateParts(const Recipe& recipe, const std::vector<bool>& known, Diagnostics& diagnostics);

// The parts as a plan has them: a rate that is left out is the schedule's.
std::vector<RatePart> RatePartsOf(const Recipe& recipe);

// Fills Parameter::part of all parameters that are stepped: the first part that matches.
void AssignRateParts(const std::vector<RatePart>& parts, std::vector<Module>& modules);

}  // namespace planwright
