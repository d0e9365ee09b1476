// Which parts of rates the tensors of two plans are in (docs/training/step.md#rates-by-part).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Tensors that are in one part of the one plan and in one of the other (Parameter::part; -1: in none).
struct PartPair {
  int from = -1, to = -1;
  std::string first;    // the first of them, by its published name
  int64_t tensors = 0;  // how many there are
};

// Of the tensors that both plans train, matched by name; those that are in no part of either are left out.
std::vector<PartPair> PartsOfTensors(const Plan& from, const Plan& to);

}  // namespace planwright
