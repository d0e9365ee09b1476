// The plans that plan_attack damages: small ones, of every feature.
#pragma once

#include <string>
#include <vector>

namespace planwright::attack {

struct Target {
  std::string name, recipe;
  std::vector<std::string> overrides;
};

std::vector<Target> Targets();

// Overrides that make other valid plans of a target: Splice takes parts of them.
std::vector<std::vector<std::string>> DonorOverrides();

}  // namespace planwright::attack
