// Which layouts `./dev test` trains: few, but together they have all that all layouts have. `./dev soak` trains all.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/numerics/layouts.h"

namespace planwright::testing {

// The axes along which a layout cuts or repeats a module, "language.tp" or "radio_encoder.dp", and "colocated" if
// modules share ranks.
std::set<std::string> AxesOf(const Layout& layout);

// All that is special about a layout: its axes, its recipe, and every override that says no axis
// ("batch.micro_samples=2").
std::set<std::string> FeaturesOf(const Layout& layout);

enum class Cover {
  kEach,   // every feature that some layout has
  kPairs,  // that, and every two axes that some layout has together
};

// A subset that covers the same as `all`: the layout that adds most comes first, of equals the one with fewer ranks.
std::vector<Layout> CoveringLayouts(const std::vector<Layout>& all, Cover cover);

}  // namespace planwright::testing
