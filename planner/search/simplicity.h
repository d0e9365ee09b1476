// How simple a layout is: among layouts that are equally fast, the simplest is chosen.
#pragma once

#include <cstdint>
#include <string>

#include "planner/search/candidate.h"

namespace planwright {

// How much there is of a layout to understand, to set up and to go wrong. Less is simpler; what is first counts first.
struct Simplicity {
  int64_t axes = 0;        // tp, cp, pp, ep and expert_tp above 1, of all modules; one more if modules are apart
  int64_t uneven = 0;      // modules whose stages have unequal numbers of layers
  int64_t recomputed = 0;  // what modules compute again: words of `recompute`

  auto operator<=>(const Simplicity&) const = default;
};

Simplicity SimplicityOf(const Candidate& candidate);
// Of one module: of its grid and stages, and of how it recomputes.
Simplicity SimplicityOf(const ModuleChoice& layout);

// "2 axes beside dp, modules apart, even stages, no recompute".
std::string SimplicityText(const Candidate& candidate);

}  // namespace planwright
