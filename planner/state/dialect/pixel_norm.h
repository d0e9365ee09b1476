// What images of a run are normalized by (planner/data/pictures/row_loops.cc): mean and deviation of CLIP, of each
// colour.
#pragma once

#include <array>

namespace planwright {

inline constexpr std::array<double, 3> kPixelMean = {0.48145466, 0.4578275, 0.40821073};
inline constexpr std::array<double, 3> kPixelDeviation = {0.26862954, 0.26130258, 0.27577711};

}  // namespace planwright
