// Passes over the forward and backward blocks of one layer, embedding or head. A forward saves
// only what its backward reads, nothing is computed that nobody reads, and activations can be traded for a second
// forward (activation recompute).
#pragma once

#include <optional>

#include "planner/compile/schedule/blocks/layer_blocks.h"
#include "planner/plan/plan.h"

namespace planwright {

// Removes the instructions whose results nobody reads: neither the caller, nor the frame, nor a probe, nor an
// instruction that stays. Instructions that add to gradients or accumulators, read samples or call a block always stay.
// A collective may go: all members of its group run the same block, so it goes on all of them.
void DropDeadInstructions(Block& block);

// What a value declares all the same whose gradient nothing makes has one form: the layout of the value, and whole
// where the value is a partial sum.
void DeclareIdleGradient(Output& value);

// Makes the forward save only what its backward reads, and removes dead instructions from both. Unread inputs of the
// backward stay, because its caller hands them over.
void PruneSaved(Block& forward, Block& backward);

// Activation recompute, for a pair that PruneSaved has seen. The result, NAME.recompute, is called on the same frame
// and microbatch just before the backward. It takes inputs of the forward, runs the forward again as far as the
// backward needs it, and saves what the backward takes. It leaves out probes and statistics: accumulators and expert
// counts must see a token once (docs/model/mixture_of_experts.md#expert-bias). `forward` then saves only the inputs
// that the result takes. Returns nothing, and changes nothing, where the backward takes only inputs of the forward.
std::optional<Block> MakeRecompute(Block& forward);

// The same of elementwise instructions alone (ops.def): of what the backward takes, the result makes again what norms,
// activation functions and short convolutions made of other values that it takes, and hands on the rest. `forward` then
// saves only that rest. Returns nothing, and changes nothing, where there is nothing to make again.
std::optional<Block> MakeElementwiseRecompute(Block& forward, const Block& backward);

// The forward as an evaluation runs it, NAME.evaluate. It keeps nothing for a backward, adds to no sum of the step, and
// draws nothing: an encoder resizes its position table in place of cropping it. Its values take no gradient. A head
// with a loss returns the loss of each token.
Block MakeEvaluation(const Block& forward);

// What runs again in the backward.
enum class Recompute { kNothing, kElementwise, kLayer };

// All passes over one layer, embedding or head. Without `learns` there is no backward, and nothing is saved for it.
void FinishBlocks(LayerBlocks& blocks, bool learns, Recompute recompute);

// What layers of this kind (LayerSummary::kind) run again.
Recompute RecomputeOf(const Module& module, char kind);

}  // namespace planwright
