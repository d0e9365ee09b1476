// The language model's blocks: forward and backward of each layer kind, of the embedding with the token merge, and of
// the head with the loss. Facts 3.3 to 3.11; layouts by the two laws of the design.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"
#include "planner/schedule/block_builder.h"
#include "planner/schedule/lower_stage.h"

namespace planwright {

// Rows of an encoder that take the places of its token.
struct MergedRows {
  std::string name, gradient_name;  // "rows", "drows"
  std::string symbol;               // how many
  int64_t token = -1;
  bool learns = true;  // the encoder takes their gradient
};

struct LanguageSizes {
  int64_t sequence = 0, samples = 0;  // S, and B of one lane's microbatch
  int64_t image_token = -1;           // -1: no images
  std::vector<MergedRows> merged;     // one for each encoder that feeds this module
  bool packed_documents = false;      // attention and Mamba state end where a document ends
};

// The stream of activations between layers, [s, B, H]: a rank has the zigzag part of its cp coordinate, and of that the
// contiguous part of its tp coordinate (facts 10).
ValueType StreamType(const BlockBuilder& b, int64_t s, int64_t samples, int64_t hidden);
// A row-parallel linear's output, or a column-parallel one's input gradient: [S, B, H], a term of a sum over tp.
ValueType PartialType(const BlockBuilder& b, int64_t sequence, int64_t samples, int64_t hidden);

// Packed documents: the block's input `document_ends`, and a list of values with it at its end. Nothing where samples
// are one document.
void InputDocuments(BlockBuilder& f, const LanguageSizes& sizes);
std::vector<std::string> WithDocuments(std::vector<std::string> values, const LanguageSizes& sizes);

// Names of a normalised value and of its 1/rms.
struct NormNames {
  std::string value, scale;
};

// The pre-norm of a residual block: x -> n, n_scale.
NormNames EmitRmsNorm(BlockBuilder& f, const std::string& x, const std::string& slot, double eps);

// Forward and backward blocks of one layer: a file for each kind, lower_KIND.cc. A kind without them does not link.
#define LAYER(id, letter, word, title)                                                                           \
  Block Lower##id##Forward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,  \
                           int origin);                                                                          \
  Block Lower##id##Backward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, \
                            const Block& forward, int origin);
#include "planner/plan/layer_kinds.def"

// Inputs that a stage passes on by name: tokens, labels, loss_mask, rows where an encoder feeds the module,
// document_ends of packed documents. Layers are recomputed as Module::recompute says. No backward where nothing learns:
// a frozen model that hands no gradient to an encoder.
ModuleBlocks LowerLanguage(const HybridLmModel& model, const Module& module, const BlockContext& context,
                           const LanguageSizes& sizes);

// Run-time sizes of the module and their maxima.
std::vector<Symbol> LanguageSymbols(const Module& module, const BlockContext& context, const LanguageSizes& sizes);

}  // namespace planwright
