// What a plan computes, layer by layer, whatever the layout: which kinds of compute instruction a layer has. Their
// sizes and settings follow from the constants of the module (V4), which are fields; two plans with equal fields and
// equal arithmetic train the same curve.
#pragma once

#include <map>
#include <set>
#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// Kinds of one layer, or of what a module does outside its layers. Backward kinds are left out, and those that only
// cut, join or count.
using Arithmetic = std::set<std::string>;

struct PlanArithmetic {
  // by module, then by layer ("language.layers.3"; "" outside layers)
  std::map<std::string, std::map<std::string, Arithmetic>> modules;
  std::set<std::string> step;  // what is done to gradients and weights once a step: "adamw language"
};

PlanArithmetic ArithmeticOf(const Plan& plan);

}  // namespace planwright
