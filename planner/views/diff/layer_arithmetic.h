// What a plan computes, layer by layer, in any layout: which compute operations each layer has. Their sizes and
// settings follow from the constants of the module (rule V4 of verify), and constants are fields. So two plans with
// equal fields and equal operations train the same curve, although their programs differ.
#pragma once

#include <map>
#include <set>
#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// Operations of one layer, or of what a module does outside its layers. Backward operations are left out, because they
// follow from the forward. Operations that only cut, join or count are left out, because they follow from the layout.
using OpNames = std::set<std::string>;

struct PlanArithmetic {
  // by module, then by layer ("language.layers.3"; "" outside layers)
  std::map<std::string, std::map<std::string, OpNames>> modules;
  std::set<std::string> step;  // state operations of a step, with their module: "adamw language"
};

PlanArithmetic ArithmeticOf(const Plan& plan);

}  // namespace planwright
