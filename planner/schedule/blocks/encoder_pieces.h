// What the blocks of the image encoder share: sizes, types of values, norms and linears, and the functions that lower
// its parts, one file each (docs/model/vision_encoder.md). Tensor parallelism runs without sequence parallelism:
// between layers every tp rank has all rows. Over cp the rows of a lane's images are dealt in bands of whole rows of
// image tokens (deal_bands in docs/operations.md), so a value with rows of tokens, patches or image tokens is this
// rank's part.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"
#include "planner/schedule/blocks/block_builder.h"
#include "planner/schedule/blocks/layer_blocks.h"

namespace planwright {

// Sizes and attributes of one encoder on one rank.
struct EncoderSizes {
  EncoderSizes(const RadioVitModel& model, const Module& module, const BlockContext& context);

  int64_t h, local_h;            // hidden, and this tp rank's part of it
  int64_t heads, head_dim, ffn;  // heads and ffn: this tp rank's part
  int64_t proj, out;            // this tp rank's part of the projector's width; its output, the language model's hidden
  int64_t shuffled;             // features of an image token behind the pixel shuffle
  int64_t patch_values;         // of one patch: 3 colors
  int64_t side;                 // of the position table, in patches
  int64_t classes, factor, cp;  // class tokens, side of a square of the pixel shuffle
  Dim patches, tokens, rows;    // of this rank's part; tokens: patches and class tokens; rows: image tokens
  Dim images, lane_tokens, lane_rows;  // of the whole lane
  double eps, projector_eps;
  bool crop;  // positions are a random window of the table

  Attributes Attention() const;
  Attributes Positions() const;
  Attributes Classes() const;
  Attributes Shuffle() const;

 private:
  Attributes WithParts(Attributes attributes) const;
};

// Types of `width` features of this rank's rows: whole on every tp rank, cut over tp (behind a column-parallel linear),
// and a term of a sum over tp (behind a row-parallel one).
ValueType PartWhole(const BlockBuilder& b, Dim rows, int64_t width);
ValueType PartFeatures(const BlockBuilder& b, Dim rows, int64_t width);
ValueType PartTerm(const BlockBuilder& b, Dim rows, int64_t width);
// One number a row, without a gradient.
ValueType PartStatistic(const BlockBuilder& b, Dim rows);

// Inputs that every part reads: `image_grid`, and with `ids` the images' numbers. Both in host memory.
void InputImageSizes(BlockBuilder& f, const EncoderSizes& sizes, bool ids);
// With cp: how many rows of tokens and of image tokens each part has, "token_counts" and "row_counts". Counting is
// cheap, so each block does it by itself.
void EmitPartCounts(BlockBuilder& f, const EncoderSizes& sizes);

struct LayerNormNames {
  std::string value, mean, scale;
};
LayerNormNames EmitLayerNorm(BlockBuilder& f, const std::string& x, const std::string& slot, const std::string& out,
                             double eps);
// dy -> dx of the layer norm of x, with the gradients of its weights.
std::string EmitLayerNormGrad(BlockBuilder& b, const std::string& dy, const std::string& x, const LayerNormNames& norm,
                              const std::string& slot, const std::string& out);
// dy -> dx of the column-parallel linear y = x W^T (+ bias), summed over tp. Adds to weight gradients if `trained`.
std::string EmitColumnLinearGrad(BlockBuilder& b, const std::string& dy, const std::string& x,
                                 std::vector<std::string> slots, bool trained, const std::string& out);

// The parts, one file each. A frozen part has no weight gradients. A part that no gradient passes has no backward and
// saves nothing.
LayerBlocks LowerEncoderEmbedding(const EncoderSizes& sizes, const BlockContext& context, int origin);
LayerBlocks LowerEncoderLayer(const EncoderSizes& sizes, const BlockContext& context, bool recompute, int origin);
LayerBlocks LowerEncoderHead(const EncoderSizes& sizes, const BlockContext& context, int origin);

}  // namespace planwright
