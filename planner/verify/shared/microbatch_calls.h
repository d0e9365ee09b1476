// The lists of a role that run samples, and what they do for one microbatch: their calls in order, including the calls
// inside blocks. Microbatches that make the same calls are looked at once, and so are roles that make the same calls.
// So the cost of the rules that read this does not grow with the batch.
#pragma once

#include <string_view>
#include <vector>

#include "planner/verify/shared/plan_index.h"

namespace planwright {

// A list of each role that runs samples: a step with its microbatches, or a round of an evaluation, which is one
// microbatch without a backward.
struct SampleList {
  std::string_view name;  // of kRoleLists
  std::vector<Instruction> Role::*list = nullptr;
  int64_t microbatches = 0;
  bool evaluates = false;

  const std::vector<Instruction>& Of(const Role& role) const { return role.*list; }
};
// The step; and the round, if the plan evaluates anything.
std::vector<SampleList> SampleListsOf(const Plan& plan);

struct FrameCall {
  const Block* block = nullptr;
  std::string_view frame;
  int end = 0;  // index behind the last call that is made inside this one
};

struct MicrobatchCalls {
  const Role* role = nullptr;    // the first that makes these calls
  bool evaluates = false;        // they are of its round, not of its step
  std::vector<FrameCall> calls;  // in order of entry: a call comes before those inside it
};

std::vector<MicrobatchCalls> CallsOfMicrobatches(const PlanIndex& index);

// The blocks that one microbatch runs in a frame.
struct FramePair {
  std::string_view frame;
  const Block* forward = nullptr;   // the first call of the frame
  const Block* backward = nullptr;  // the last; null: the frame is called once, and has no backward
  std::vector<const Block*> again;  // between the two: the forward, run again (activation recompute)
  bool evaluates = false;           // in a round of an evaluation
};
// Each combination of frame, forward and backward once, from all microbatches.
std::vector<FramePair> PairsOf(const std::vector<MicrobatchCalls>& microbatches);

}  // namespace planwright
