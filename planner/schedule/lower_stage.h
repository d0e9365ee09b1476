// The blocks of one pipeline stage of a module: what its layers do forward and backward, called in order. The same for
// every kind of model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/schedule/block_builder.h"

namespace planwright {

// Forward and backward of one layer, of the embedding or of the head. A layer's first input and first output is the
// stream of activations ("x", of the backward "dx..."); an embedding makes it, a head ends it. Every other input is
// common to the whole stage and keeps its name: "tokens", "image_grid".
struct LayerBlocks {
  Block forward;
  std::optional<Block> backward;  // none: frozen, and nothing before it learns
  // called before the backward: runs the forward again and saves what the backward takes
  std::optional<Block> recompute;
};

struct ModuleBlocks {
  LayerBlocks embedding, head;
  std::map<char, LayerBlocks> layers;  // by LayerSummary::kind
};

// What overlaps with compute, on streams of its own.
struct Overlap {
  // a bucket's gradients are reduced as soon as the last microbatch's backward has finished with it
  bool reduce = false;
  // a bucket's parameters are gathered while others are stepped, and while the next forward has not reached it
  bool gather = false;
};

struct StageBlocks {
  Block forward;                       // NAME.s0.forward
  std::optional<Block> backward;       // NAME.s0.backward
  std::optional<Block> last_backward;  // with Overlap::reduce: reduces gradients, NAME.s0.backward.last
};

// Stage `stage` of `module`, whose layers are Module::layers of that stage; the first stage has the embedding, the last
// the head. `reduces_early`: Overlap::reduce.
StageBlocks LowerStage(const Module& module, const BlockContext& context, const ModuleBlocks& blocks, int stage,
                       bool reduces_early);

// Whether some block of the stage has a backward; whether the stage hands a gradient to the one before it (or over the
// bridge).
bool HasBackward(const Module& module, const ModuleBlocks& blocks, int stage);
bool GivesGradient(const Module& module, const ModuleBlocks& blocks, int stage);

// The reduce-scatter of a bucket's gradients and, where tp ranks hold terms of them, the sum over tp.
std::vector<Instruction> ReduceBucket(const Module& module, size_t bucket);
// The all-gather of a bucket's parameters from their shards; nothing where one rank holds all.
std::vector<Instruction> GatherBucket(const Module& module, size_t bucket);

inline constexpr char kReduceStream[] = "reduce";
inline constexpr char kGatherStream[] = "gather";

}  // namespace planwright
