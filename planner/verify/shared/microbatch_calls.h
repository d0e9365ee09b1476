// What a role does for one microbatch: its calls in order, including the calls inside blocks. Microbatches that make
// the same calls are looked at once, and so are roles that make the same calls. So the cost of the rules that read this
// does not grow with the batch.
#pragma once

#include <string_view>
#include <vector>

#include "planner/verify/shared/plan_index.h"

namespace planwright {

struct FrameCall {
  const Block* block = nullptr;
  std::string_view frame;
  int end = 0;  // index behind the last call that is made inside this one
};

struct MicrobatchCalls {
  const Role* role = nullptr;    // the first that makes these calls
  std::vector<FrameCall> calls;  // in order of entry: a call comes before those inside it
};

std::vector<MicrobatchCalls> CallsOfMicrobatches(const PlanIndex& index);

// The blocks that one microbatch runs in a frame.
struct FramePair {
  std::string_view frame;
  const Block* forward = nullptr;   // the first call of the frame
  const Block* backward = nullptr;  // the last; null: the frame is called once, and has no backward
  std::vector<const Block*> again;  // between the two: the forward, run again (activation recompute)
};
// Each combination of frame, forward and backward once, from all microbatches.
std::vector<FramePair> PairsOf(const std::vector<MicrobatchCalls>& microbatches);

}  // namespace planwright
