// A list of a role as the rules on state need it: calls of blocks that contain collectives on state are replaced by
// the bodies of these blocks, as with gradients.overlap_reduce, where a stage's last backward reduces each bucket as
// soon as its gradients are complete. Other calls stay one instruction. Streams do not matter here: instructions that
// touch the same state run in program order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/verify/shared/plan_index.h"

namespace planwright {

// The state that an instruction moves, such as "%language.gradients.0"; "nothing" if it has no input.
std::string Subject(const Instruction& op);
// Whether an instruction communicates buffers of buckets ("%...") or sums of the step ("$...").
bool MovesState(const Instruction& op);

struct ExpandedEntry {
  const Instruction* op = nullptr;
  const Block* block = nullptr;  // whose body has the instruction; null: the list itself
  std::string_view frame;        // that the instruction runs in, or calls a block in; empty: none
};

// Keeps references: index and list must outlive it.
std::vector<ExpandedEntry> Expanded(const PlanIndex& index, const std::vector<Instruction>& list);

// For messages, what an instruction works on: a frame and microbatch, a state, a bucket or a module.
std::string LabelOf(const Instruction& op);

}  // namespace planwright
