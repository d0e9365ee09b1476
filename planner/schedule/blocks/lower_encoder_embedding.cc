// The encoder's embedding: a linear over the values of a patch, positions, and class tokens in front of each image
// (docs/model/vision_encoder.md#patches, #position-embedding, #class-tokens).
#include "planner/schedule/blocks/block_passes.h"
#include "planner/schedule/blocks/encoder_pieces.h"

namespace planwright {

using std::string;

LayerBlocks LowerEncoderEmbedding(const EncoderSizes& w, const BlockContext& context, int origin) {
  BlockBuilder f(context, context.module + ".embed.forward", origin);
  // Pixels take no gradient.
  ValueType patches = PartWhole(f, w.patches, w.patch_values);
  patches.gradient = std::nullopt;
  f.Input("patches", patches);
  InputImageSizes(f, w, true);
  f.Make(OpKind::kLinear, {.inputs = {"patches"}, .parameters = {"embedder"}}, "e_local",
         PartFeatures(f, w.patches, w.local_h));
  // The linear is column-parallel, and positions are added to whole rows.
  const string e = f.AllGather("e_local", 1, "e", Replicated());
  f.Make(
      OpKind::kPositionAndClass,
      {.inputs = {e, "image_grid", "image_ids"}, .parameters = {"pos_embed", "cls_token"}, .attributes = w.Positions()},
      "x", PartWhole(f, w.tokens, w.h));
  f.ProbeValue("x", "vision.patch_and_position");
  LayerBlocks blocks = {.forward = f.Finish({"x"}, {"patches", "image_grid", "image_ids"})};

  BlockBuilder b(context, context.module + ".embed.backward", origin);
  b.TakeSaved(blocks.forward);
  b.InputGradient("dx", PartWhole(b, w.tokens, w.h));
  b.Make(OpKind::kPositionAndClassGrad,
         {.inputs = {"dx", "image_grid", "image_ids"},
          .gradients = {"pos_embed", "cls_token"},
          .attributes = w.Positions()},
         "de", PartWhole(b, w.patches, w.h));
  const string de = b.Slice("de", 1, "de_local");
  b.Emit(OpKind::kLinearWeightGrad, {.inputs = {de, "patches"}, .gradients = {"embedder"}});
  blocks.backward = b.Finish({}, {});
  FinishBlocks(blocks, context.trains_backbone, false);
  return blocks;
}

}  // namespace planwright
