// Passes over the forward and backward block of one piece of a model, whatever it computes: what a backward does not
// read is not saved, what nobody reads is not computed, and activations are traded for a second forward.
#pragma once

#include <optional>

#include "planner/plan/plan.h"
#include "planner/schedule/lower_stage.h"

namespace planwright {

// Drops the instructions whose results nobody reads: neither the caller, nor the frame, nor a probe, nor an instruction
// that stays. Whatever adds to gradients or accumulators, reads samples or calls a block stays. A collective may go:
// all members of its group call this block.
void DropDead(Block& block);

// The forward saves what its backward reads and no more, and neither computes what nobody reads. The backward's unread
// inputs stay: its caller hands them over.
void PruneSaved(Block& forward, Block& backward);

// Activation recompute of a pair that PruneSaved has seen. Afterwards the forward saves only those of its own inputs
// that the result takes; the result, NAME.recompute, is called on the same frame and microbatch just before the
// backward. It takes them, runs the forward again without its statistics (accumulators and expert counts see a token
// once, facts 3.6) and its probes, as far as the backward needs it, and saves what the backward takes. None, and
// nothing changes, where the backward takes nothing but inputs of the forward.
std::optional<Block> Recomputed(Block& forward);

// All of it for one piece: what is saved is what is read, and with `recompute` less; without `learns` there is no
// backward to save for.
void FinishBlocks(LayerBlocks& blocks, bool learns, bool recompute);

// Whether layers of this kind (LayerSummary::kind) are recomputed.
bool Recomputes(const Module& module, char kind);

}  // namespace planwright
