// Valid recipes drawn at random: what is trained, and on which layout of up to 16 ranks. Every axis of every module and
// every feature may meet every other.
#pragma once

#include <cstdint>

#include "tests/numerics/layouts.h"
#include "tests/numerics/layouts/drawn_layouts.h"

namespace planwright::testing {

// The same layout for the same seed. Draws until `plan validate` accepts: what validates must run. `plan` and `source`:
// the program and the clone with the recipes; empty: this build's and its own.
Layout RandomLayout(uint64_t seed, DrawnFamily family = DrawnFamily::kHybrid, const std::string& plan = "",
                    const std::string& source = "");

// The same, of a recipe whose language model or encoder has adapters.
Layout RandomAdapters(uint64_t seed, DrawnFamily family = DrawnFamily::kHybrid);

}  // namespace planwright::testing
