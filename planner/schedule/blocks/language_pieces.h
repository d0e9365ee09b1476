// What the blocks of the language model share: sizes, types of the residual stream, the pre-norm, and the functions
// that lower its parts, one file each. Tensor parallelism runs with sequence parallelism: between layers each tp rank
// has a part of the sequence (docs/layouts/sequence.md#sequence-parallelism).
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"
#include "planner/schedule/blocks/block_builder.h"
#include "planner/schedule/blocks/layer_blocks.h"

namespace planwright {

// Rows of an encoder. They replace the embeddings of its token.
struct MergedRows {
  std::string name, gradient_name;  // "rows", "drows"
  std::string symbol;               // how many rows
  int64_t token = -1;
  bool learns = true;  // the encoder takes their gradient
};

struct LanguageSizes {
  int64_t sequence = 0, samples = 0;  // tokens of a sample, and samples of one lane's microbatch
  int64_t image_token = -1;           // -1: no images
  std::vector<MergedRows> merged;     // one for each encoder that feeds this module
  bool packed_documents = false;      // attention and Mamba state end where a document ends
};

// The residual stream between layers, [s, samples, hidden], where s is the part of the sequence that this rank has:
// zigzag over cp, and of that a contiguous part over tp.
ValueType StreamType(const BlockBuilder& b, int64_t s, int64_t samples, int64_t hidden);
// The output of a row-parallel linear, or the input gradient of a column-parallel one: [sequence, samples, hidden], a
// term of a sum over tp. `sequence`: of this cp rank.
ValueType PartialType(const BlockBuilder& b, int64_t sequence, int64_t samples, int64_t hidden);

// With packed documents (docs/training/data.md#packed-documents): adds the input `document_ends` to the block, and
// appends it to a list of operands. Without: nothing.
void InputDocuments(BlockBuilder& f, const LanguageSizes& sizes);
std::vector<std::string> WithDocuments(std::vector<std::string> values, const LanguageSizes& sizes);

// Names of a normalized value and of its 1/rms.
struct NormNames {
  std::string value, scale;
};

// The pre-norm of a residual block (docs/model/language_model.md#rmsnorm): x -> n, n_scale.
NormNames EmitRmsNorm(BlockBuilder& f, const std::string& x, const std::string& slot, double eps);

// Forward and backward blocks of one layer: a file for each kind, lower_KIND.cc. A kind without them does not link.
#define LAYER(id, letter, word, title)                                                                           \
  Block Lower##id##Forward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,  \
                           int origin);                                                                          \
  Block Lower##id##Backward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, \
                            const Block& forward, int origin);
#include "planner/plan/layer_kinds.def"

LayerBlocks LowerLanguageEmbedding(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                                   int origin);
LayerBlocks LowerLanguageHead(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                              int origin);

}  // namespace planwright
