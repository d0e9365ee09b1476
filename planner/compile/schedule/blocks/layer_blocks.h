// The blocks that one kind of layer, or one module, is made of.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// How the ranks along tp hold what a backward adds to the gradients of trained weights, by slot. With one rank along tp
// each is sharded.
using SlotGradients = std::map<std::string, TpGradient, std::less<>>;

// Of each input and each output of a block: the carry (model_statement.h) that it is, or whose gradient it is, by its
// name in blocks; empty: it is none. Outputs that the lists do not reach are none either.
struct Carried {
  std::vector<std::string> inputs, outputs;
};

// Forward and backward of one layer, of the embedding or of the head. The first input and the first output of a layer
// are the residual stream: "x" of the forward, its gradient "dx..." of the backward. An embedding makes the stream, a
// head ends it. All other inputs are common to the whole stage and keep their names: "tokens", "image_grid".
struct LayerBlocks {
  Block forward;
  std::optional<Block> backward;  // none: nothing in it or before it learns
  // Called before the backward: runs the forward again and saves what the backward takes.
  std::optional<Block> recompute;
  std::optional<Block> evaluate;  // the forward of an evaluation; none: nothing is evaluated
  SlotGradients gradients;
  Carried carried, carried_back;  // of the forward, and of the backward
};

struct ModuleBlocks {
  LayerBlocks embedding, head;
  std::map<char, LayerBlocks> layers;  // by LayerSummary::kind: layers of one kind share their blocks
  std::vector<LayerBlocks> taps;       // those that take or give carries do not, as the types of these differ
};

// The blocks of each layer of the module.
std::vector<const LayerBlocks*> BlocksOfLayers(const Module& module, const ModuleBlocks& blocks);

}  // namespace planwright
