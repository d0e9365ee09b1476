// The drawn sequences of a run, for InitializeParameters.
#pragma once

#include <cstdint>

#include "executor/optimizer/initialize.h"

namespace planwright::executor {

// Keyed by the seed of the run and a name, counted by the element's index (docs/training/layout_independence.md#draws).
Draws PhiloxDraws(uint64_t seed);

}  // namespace planwright::executor
