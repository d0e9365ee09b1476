// What a role does for one microbatch: its calls in order, those inside blocks included. Microbatches that make the
// same calls are looked at once, and so are roles that make the same, so the cost does not grow with the batch.
#pragma once

#include <string_view>
#include <vector>

#include "planner/verify/shared/plan_index.h"

namespace planwright {

struct FrameCall {
  const Block* block = nullptr;
  std::string_view frame;
  int end = 0;  // index behind the last call made inside this one
};

struct MicrobatchCalls {
  const Role* role = nullptr;     // the first that does so
  std::vector<int> microbatches;  // of that role
  std::vector<FrameCall> calls;   // in order of entry
};

std::vector<MicrobatchCalls> CallsOfMicrobatches(const PlanIndex& index);

// The forward of a frame and its backward, from all microbatches; each pair once.
struct FramePair {
  const Role* role = nullptr;
  std::string_view frame;
  const Block* forward = nullptr;
  const Block* backward = nullptr;  // null: none
  std::vector<const Block*> again;  // between them: the forward, run again
};
std::vector<FramePair> PairsOf(const std::vector<MicrobatchCalls>& microbatches);

}  // namespace planwright
