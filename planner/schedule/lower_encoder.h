// The RADIO encoder's blocks: patch embedding with positions, transformer blocks, final norm with pixel shuffle and
// projector (facts 3.9, 3.10). Tensor parallel without sequence parallelism: activations between blocks are whole on
// every tp rank. Context parallel: the packed rows of a lane's images are dealt over cp in bands (ops.def), k and v are
// gathered for attention, and the projected rows of the whole lane for the bridge; parameter gradients are terms of the
// sum over dp_cp.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"
#include "planner/schedule/block_builder.h"
#include "planner/schedule/lower_stage.h"

namespace planwright {

// Inputs that a stage passes on by name: patches, image_grid, image_ids; the head's backward takes drows, of the whole
// lane on every rank. Run-time sizes: the symbols of EncoderSymbols. What is frozen has no weight gradients and saves
// nothing; blocks that no gradient passes have no backward: all but the head's where the backbone is frozen, and that
// too where the projection is. A frozen backbone runs as in evaluation: its table of positions is resized, never
// cropped.
ModuleBlocks LowerEncoder(const RadioVitModel& model, const Module& module, const BlockContext& context);

// Run-time sizes of a module and their maxima. `rows`: image tokens of the largest lane's microbatch.
std::vector<Symbol> EncoderSymbols(const RadioVitModel& model, const Module& module, int64_t rows);

}  // namespace planwright
