// The blocks of the language model (docs/model/language_model.md): its embedding with the merge of encoder rows, one
// pair of forward and backward for each layer kind, and its head with the loss.
#pragma once

#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"
#include "planner/schedule/blocks/language_pieces.h"

namespace planwright {

// Inputs of blocks that a stage passes on by name: tokens, labels, loss_mask, rows where an encoder feeds the module,
// document_ends of packed documents. Layers are recomputed as Module::recompute says. There is no backward where
// nothing learns: the model is frozen and hands no gradient to an encoder.
ModuleBlocks LowerLanguage(const HybridLmModel& model, const Module& module, const BlockContext& context,
                           const LanguageSizes& sizes);

// Run-time sizes of the module, with the maxima that follow from the layout alone (symbol_sizes.h tightens them).
std::vector<Symbol> LanguageSymbols(const Module& module, const BlockContext& context, const LanguageSizes& sizes);

}  // namespace planwright
