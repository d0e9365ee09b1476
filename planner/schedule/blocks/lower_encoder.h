// The blocks of the RADIO image encoder (docs/model/vision_encoder.md): patch embedding with positions, transformer
// blocks, final norm with pixel shuffle and projector. Over cp, k and v are gathered for attention, the projected rows
// of the whole lane are gathered for the bridge, and parameter gradients are terms of the sum over dp_cp. How values
// are cut: encoder_pieces.h.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"
#include "planner/schedule/blocks/block_builder.h"
#include "planner/schedule/blocks/layer_blocks.h"

namespace planwright {

// Inputs of blocks that a stage passes on by name: patches, image_grid, image_ids. The head's backward takes drows, the
// gradient of the rows of the whole lane, on every rank. With a frozen backbone only the head has a backward, and
// without a trained projection the head has none either. A frozen backbone runs as in evaluation: the table of
// positions is resized, never cropped.
ModuleBlocks LowerEncoder(const RadioVitModel& model, const Module& module, const BlockContext& context);

// Run-time sizes of the module and their maxima (symbol_sizes.h tightens them). `rows`: image tokens that a microbatch
// of the largest lane can have.
std::vector<Symbol> EncoderSymbols(const RadioVitModel& model, const Module& module, int64_t rows);

}  // namespace planwright
