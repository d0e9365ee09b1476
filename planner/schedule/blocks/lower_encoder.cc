#include "planner/schedule/blocks/lower_encoder.h"

#include <algorithm>

#include "planner/schedule/blocks/block_passes.h"
#include "planner/schedule/blocks/encoder_pieces.h"

namespace planwright {

ModuleBlocks LowerEncoder(const RadioVitModel& model, const Module& module, const BlockContext& context) {
  const EncoderSizes sizes(model, module, context);
  ModuleBlocks blocks = {.embedding = LowerEncoderEmbedding(sizes, context, module.origin),
                         .head = LowerEncoderHead(sizes, context, module.origin),
                         .layers = {}};
  blocks.layers.emplace('V', LowerEncoderLayer(sizes, context, IsRecomputed(module, 'V'), module.origin));
  return blocks;
}

std::vector<Symbol> EncoderSymbols(const RadioVitModel& model, const Module& module, int64_t rows) {
  // Each row is an image token, which pixel shuffle makes of a square of patches. An image has one row at least.
  const int64_t square = model.pixel_shuffle * model.pixel_shuffle, patches = rows * square, cp = module.grid.cp;
  const std::string& name = module.name;
  const Symbol lane_rows = {name + ".image_rows", rows, "image tokens of a lane's microbatch"};
  const Symbol images = {name + ".images", rows, "images of a lane's microbatch, each of one image token or more"};
  if (cp == 1) {
    return {lane_rows,
            {name + ".patches", patches, "patches of a lane's microbatch"},
            images,
            {name + ".tokens", patches + rows * model.class_tokens, "patches and class tokens of a lane's microbatch"}};
  }
  // A part has at most one band more than its share. Each of its bands may begin an image, which brings class tokens.
  const int64_t band = model.max_image / model.patch / model.pixel_shuffle,
                part = std::min(rows, (rows + cp - 1) / cp + band);
  return {
      lane_rows,
      {name + ".part_image_rows", part, "image tokens of a cp part of a lane's microbatch"},
      {name + ".patches", part * square, "patches of a cp part of a lane's microbatch"},
      images,
      {name + ".tokens", part * (square + model.class_tokens),
       "patches and class tokens of a cp part of a lane's microbatch"},
      {name + ".lane_tokens", patches + rows * model.class_tokens, "patches and class tokens of a lane's microbatch"}};
}

}  // namespace planwright
