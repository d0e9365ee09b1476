// What the encoder's blocks share: sizes, types of values on one rank, and the emitters of norms and linears. Facts
// 3.9, 3.10. Tensor parallel without sequence parallelism: activations between blocks are whole on every tp rank.
// Context parallel: packed rows are dealt over cp in bands (ops.def), so every value with rows of tokens, patches or
// image tokens is this rank's part.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"
#include "planner/schedule/block_builder.h"
#include "planner/schedule/lower_stage.h"

namespace planwright {

// Shapes and attributes of one encoder.
struct EncoderSizes {
  EncoderSizes(const RadioVitModel& model, const Module& module, const BlockContext& context);

  int64_t h, local_h, heads, head_dim, ffn, proj, out, shuffled, patch_values, side, classes, factor, cp;
  Dim patches, tokens, rows;           // of this rank's part
  Dim images, lane_tokens, lane_rows;  // of the whole lane
  double eps, projector_eps;
  bool crop;

  Attributes Attention() const;
  Attributes Positions() const;
  Attributes Classes() const;
  Attributes Shuffle() const;

 private:
  Attributes WithParts(Attributes attributes) const;
};

// `width` features of this part's rows: whole, a column-parallel linear's (cut over tp), or a term of the sum over tp.
ValueType PartWhole(const BlockBuilder& b, Dim rows, int64_t width);
ValueType PartFeatures(const BlockBuilder& b, Dim rows, int64_t width);
ValueType PartTerm(const BlockBuilder& b, Dim rows, int64_t width);
// A statistic of rows: no gradient.
ValueType PartStatistic(const BlockBuilder& b, Dim rows);

void GridInputs(BlockBuilder& f, const EncoderSizes& sizes, bool ids);
// With cp: the rows of tokens and of image tokens that each part has, "token_counts" and "row_counts". They are few and
// cheap, so that each block counts for itself.
void EmitCounts(BlockBuilder& f, const EncoderSizes& sizes);

struct LayerNormNames {
  std::string value, mean, scale;
};
LayerNormNames EmitLayerNorm(BlockBuilder& f, const std::string& x, const std::string& slot, const std::string& out,
                             double eps);
// dy -> dx through the layer norm of x.
std::string EmitLayerNormGrad(BlockBuilder& b, const std::string& dy, const std::string& x, const LayerNormNames& norm,
                              const std::string& slot, const std::string& out);
// Through y = x W^T (+ bias), W cut by rows: weight gradients unless `trained` is false, and the input's gradient
// summed over tp.
std::string EmitColumnLinearGrad(BlockBuilder& b, const std::string& dy, const std::string& x,
                                 std::vector<std::string> slots, bool trained, const std::string& out);

// The pieces, one file each. What is frozen has no weight gradients and saves nothing; a piece that no gradient passes
// has no backward.
LayerBlocks LowerEncoderEmbedding(const EncoderSizes& sizes, const BlockContext& context, int origin);
LayerBlocks LowerEncoderLayer(const EncoderSizes& sizes, const BlockContext& context, bool recompute, int origin);
LayerBlocks LowerEncoderHead(const EncoderSizes& sizes, const BlockContext& context, int origin);

}  // namespace planwright
