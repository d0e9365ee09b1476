// How many parameters each layer of a module has. A layer that makes features of an encoder's inner layers has those of
// the projector, which the plan counts apart (Module::projector_count).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct LayerParameters {
  int64_t own = 0, projector = 0;

  LayerParameters& operator+=(const LayerParameters& other);
  std::string Text() const;  // "1,024", "1,024 of the projector"
};

// By Module::layers.
std::vector<LayerParameters> ParametersOfLayers(const Module& module);

}  // namespace planwright
