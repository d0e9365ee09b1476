// The blocks of one pipeline stage of a module: they call the blocks of its layers in order. The same code serves every
// kind of model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/compile/schedule/blocks/block_builder.h"
#include "planner/compile/schedule/blocks/layer_blocks.h"
#include "planner/plan/plan.h"

namespace planwright {

// Which communication of buckets overlaps with compute, each on a stream of its own.
struct Overlap {
  // Gradients of a bucket are reduced as soon as the backward of the last microbatch is done with them.
  bool reduce = false;
  // Parameters of a bucket are gathered while other buckets are stepped, and until the next forward reads them.
  bool gather = false;
};

struct StageBlocks {
  Block forward;                  // NAME.s0.forward
  std::optional<Block> backward;  // NAME.s0.backward
  std::optional<Block> evaluate;  // NAME.s0.evaluate; none: nothing is evaluated
  // With Overlap::reduce: the backward of the last microbatch, which also reduces gradients. NAME.s0.backward.last
  std::optional<Block> last_backward;
  // What the stage before hands to it: the stream "x", and behind it carries (model_statement.h) by their names. Those
  // whose gradients it hands back. In a program of a stage: "x_in" and "dx_in", at the stage before "x_out" and
  // "dx_out".
  std::vector<std::string> takes, gives_back;
};

// Blocks of one stage: its layers are those of Module::layers with that stage. The first stage has the embedding, the
// last the head. `reduces_early`: Overlap::reduce.
StageBlocks LowerStage(const Module& module, const ModuleBlocks& blocks, int stage, bool reduces_early);

// The reduce-scatter of a bucket's gradients and, where tp ranks hold terms of a sum, the all-reduce of the shards over
// tp (docs/training/step.md#gradient-reduction). `bucket`: index in Module::buckets.
std::vector<Instruction> ReduceBucket(const Module& module, size_t bucket);
// The all-gather of a bucket's parameters from their shards; nothing where one rank holds the whole bucket.
std::vector<Instruction> GatherBucket(const Module& module, size_t bucket);

inline constexpr char kReduceStream[] = "reduce";
inline constexpr char kGatherStream[] = "gather";

}  // namespace planwright
