// What a plan computes, layer by layer, whatever the layout: which compute instructions a layer has, with their sizes as numbers of the whole
// model. Two plans with equal fields and equal arithmetic train the same curve.
#pragma once

#include <map>
#include <set>
#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// Of one layer, or of what a module does outside its layers: "route" -> {} and "route.scale" -> {"2.5"}. Backward instructions, those that only
// cut or join, and attributes of the layout are left out.
using Arithmetic = std::map<std::string, std::set<std::string>>;

struct PlanArithmetic {
  std::map<std::string, std::map<std::string, Arithmetic>> modules;  // by module, then by layer ("language.layers.3"; "" outside layers)
  std::set<std::string> step;  // what is done to gradients and weights once a step: "adamw language"
};

PlanArithmetic ArithmeticOf(const Plan& plan);

}  // namespace planwright
