// Valid recipes drawn at random: what is trained, and on which layout of up to 16 ranks. Every axis of every module and
// every feature may meet every other.
#pragma once

#include <cstdint>

#include "tests/numerics/layouts.h"
#include "tests/numerics/layouts/drawn_layouts.h"

namespace planwright::testing {

// The same layout for the same seed. Draws until `plan validate` accepts: what validates must run.
Layout RandomLayout(uint64_t seed, DrawnFamily family = DrawnFamily::kHybrid);

}  // namespace planwright::testing
