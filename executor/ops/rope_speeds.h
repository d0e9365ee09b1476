// How fast the planes of a rotary embedding turn with positions.
#pragma once

#include <vector>

#include "planner/plan/instruction.h"

namespace planwright::executor::ops {

struct RopeSpeeds {
  // Of a `rope` or `rope_grad` (docs/model/decoder.md#rotary-embedding). c10::Error for a kind of scaling that is none.
  explicit RopeSpeeds(const Instruction& instruction);

  std::vector<double> of;     // of each plane, in radians for each position
  std::vector<int64_t> axis;  // by which positions each plane turns: 0, or with several axes 1 or 2
  bool several = false;       // there are several axes
  double amplitude = 1;       // of what turns
};

}  // namespace planwright::executor::ops
