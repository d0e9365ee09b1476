#include "planner/schedule/lower_stage.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"

namespace planwright {
namespace {

using std::string;

// A part of a stage in forward order.
struct Piece {
  const LayerBlocks* blocks = nullptr;
  string frame;
  bool makes_stream = false;  // the embedding
};

std::vector<Piece> PiecesOf(const Module& module, const ModuleBlocks& blocks, int stage) {
  std::vector<Piece> pieces;
  if (stage == 0) pieces.push_back({&blocks.embedding, module.name + ".embed", true});
  for (const LayerSummary& layer : module.layers) {
    if (layer.stage == stage) pieces.push_back({&blocks.layers.at(layer.kind), layer.frame});
  }
  if (stage + 1 == module.grid.pp) pieces.push_back({&blocks.head, module.name + ".head"});
  return pieces;
}

// The pieces with a backward, which are the last ones: what is before them does not learn.
size_t FirstLearning(const std::vector<Piece>& pieces) {
  size_t first = pieces.size();
  while (first > 0 && pieces[first - 1].blocks->backward) --first;
  return first;
}

ValueType TypeIn(const Block& block, const string& value) {
  for (const Output& input : block.inputs) {
    if (input.name == value) return input.type;
  }
  for (const Output& take : block.takes) {
    if (take.name == value) return take.type;
  }
  for (const Instruction& instruction : block.body) {
    for (const Output& output : instruction.outputs) {
      if (output.name == value) return output.type;
    }
  }
  Bug(absl::StrCat("block ", block.name, " has no value ", value));
}

// By piece: the buckets whose last gradient its backward makes. Backwards run from the last piece to the first, so that
// is the first one with a backward and a storage in the bucket.
std::vector<std::set<size_t>> FinishedBuckets(const Module& module, const std::vector<Piece>& pieces) {
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].blocks->backward) places.emplace(pieces[i].frame, i);
  }
  std::map<size_t, size_t> first;  // by bucket
  for (const Storage& storage : module.storages) {
    const auto place = storage.bucket >= 0 ? places.find(storage.frame) : places.end();
    if (place == places.end()) continue;
    const auto known = first.emplace(storage.bucket, place->second).first;
    known->second = std::min(known->second, place->second);
  }
  std::vector<std::set<size_t>> finished(pieces.size());
  for (const auto& [bucket, place] : first) finished[place].insert(bucket);
  return finished;
}

// A stage without layers hands its input on.
Block PassOn(const Module& module, const BlockContext& context, const ModuleBlocks& blocks, int stage, bool backward) {
  BlockBuilder b(context, absl::StrCat(module.name, ".s", stage, backward ? ".backward" : ".forward"), module.origin);
  const Block& embedding = blocks.embedding.forward;
  const string name = backward ? "dx_out" : "x_in";
  b.Input(name, TypeIn(embedding, embedding.outputs.front()));
  return b.Finish({name}, {});
}

Block Forward(const Module& module, const BlockContext& context, const std::vector<Piece>& pieces, int stage) {
  BlockBuilder f(context, absl::StrCat(module.name, ".s", stage, ".forward"), module.origin);
  string x = "x_in";
  if (!pieces.front().makes_stream) f.Input(x, pieces.front().blocks->forward.inputs.front().type);
  std::set<string> common;
  for (const Piece& piece : pieces) {
    const std::vector<Output>& inputs = piece.blocks->forward.inputs;
    for (size_t i = piece.makes_stream ? 0 : 1; i < inputs.size(); ++i) {
      if (common.insert(inputs[i].name).second) f.Input(inputs[i].name, inputs[i].type);
    }
  }
  std::vector<string> outputs;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Block& block = pieces[i].blocks->forward;
    std::vector<string> arguments;
    for (const Output& input : block.inputs) arguments.push_back(input.name);
    if (!pieces[i].makes_stream) arguments.front() = x;
    outputs.clear();
    for (const string& output : block.outputs) outputs.push_back(i + 1 < pieces.size() ? absl::StrCat("x", i) : output);
    f.Call(block, pieces[i].frame, arguments, outputs);
    if (!outputs.empty()) x = outputs.front();
  }
  return f.Finish(outputs, {});
}

// Appends the reductions of buckets whose last gradient the call before them made.
void ReduceFinished(const Module& module, const std::set<size_t>& finished, std::vector<Instruction>& body) {
  for (size_t bucket : finished) {
    std::vector<Instruction> reduce = ReduceBucket(module, bucket);
    for (Instruction& instruction : reduce) instruction.stream = kReduceStream;
    std::move(reduce.begin(), reduce.end(), std::back_inserter(body));
  }
}

Block Backward(const Module& module, const BlockContext& context, const std::vector<Piece>& pieces, int stage,
               bool reduces) {
  const size_t first = FirstLearning(pieces);
  BlockBuilder b(context, absl::StrCat(module.name, ".s", stage, ".backward", reduces ? ".last" : ""), module.origin);
  string dx;
  const Block& last = *pieces.back().blocks->backward;
  if (!last.inputs.empty()) {
    dx = stage + 1 == module.grid.pp ? last.inputs.front().name : "dx_out";
    b.Input(dx, last.inputs.front().type);
  }
  std::vector<std::set<size_t>> finished;
  if (reduces) finished = FinishedBuckets(module, pieces);
  std::vector<string> outputs;
  std::vector<Instruction>& body = b.body();
  for (size_t i = pieces.size(); i-- > first;) {
    const LayerBlocks& blocks = *pieces[i].blocks;
    if (blocks.recompute) b.Call(*blocks.recompute, pieces[i].frame, {}, {});
    outputs.clear();
    for (const string& output : blocks.backward->outputs) {
      const bool leaves = i == first;
      outputs.push_back(!leaves ? absl::StrCat("dx", i) : pieces[i].makes_stream ? output : "dx_in");
    }
    b.Call(*blocks.backward, pieces[i].frame, dx.empty() ? std::vector<string>{} : std::vector<string>{dx}, outputs);
    if (reduces) ReduceFinished(module, finished[i], body);
    if (!outputs.empty()) dx = outputs.front();
  }
  return b.Finish(outputs, {});
}

Instruction Collective(OpKind kind, const string& input, const string& output, DType dtype, int64_t elements,
                       const string& group) {
  Instruction instruction{.kind = kind, .inputs = {input}};
  instruction.outputs = {{output, {dtype, {elements}, {}, std::nullopt, false}}};
  if (kind == OpKind::kAllReduce) {
    instruction.attributes["reduce"] = string("sum");
  } else {
    instruction.attributes["dim"] = int64_t{0};
  }
  instruction.group = group;
  return instruction;
}

string BucketValue(const Module& module, const char* what, size_t bucket) {
  return absl::StrCat("%", module.name, ".", what, ".", bucket);
}

}  // namespace

std::vector<Instruction> ReduceBucket(const Module& module, size_t index) {
  const Bucket& bucket = module.buckets[index];
  const string shards = BucketValue(module, "gradient_shards", index);
  const int64_t elements = bucket.elements / bucket.shards;
  std::vector<Instruction> reduce;
  if (!bucket.reduce_group.empty()) {
    reduce.push_back(Collective(OpKind::kReduceScatter, BucketValue(module, "gradients", index), shards, bucket.master,
                                elements, bucket.reduce_group));
  }
  if (!bucket.tp_group.empty())
    reduce.push_back(Collective(OpKind::kAllReduce, shards, shards, bucket.master, elements, bucket.tp_group));
  return reduce;
}

std::vector<Instruction> GatherBucket(const Module& module, size_t index) {
  const Bucket& bucket = module.buckets[index];
  if (bucket.reduce_group.empty()) return {};
  return {Collective(OpKind::kAllGather, BucketValue(module, "parameter_shards", index),
                     BucketValue(module, "parameters", index), bucket.dtype, bucket.elements, bucket.reduce_group)};
}

bool HasBackward(const Module& module, const ModuleBlocks& blocks, int stage) {
  const std::vector<Piece> pieces = PiecesOf(module, blocks, stage);
  return pieces.empty() ? GivesGradient(module, blocks, stage) : pieces.back().blocks->backward.has_value();
}

bool GivesGradient(const Module& module, const ModuleBlocks& blocks, int stage) {
  const std::vector<Piece> pieces = PiecesOf(module, blocks, stage);
  if (pieces.empty()) return HasBackward(module, blocks, stage - 1);
  return FirstLearning(pieces) == 0 && !pieces.front().blocks->backward->outputs.empty();
}

StageBlocks LowerStage(const Module& module, const BlockContext& context, const ModuleBlocks& blocks, int stage,
                       bool reduces_early) {
  const std::vector<Piece> pieces = PiecesOf(module, blocks, stage);
  if (pieces.empty()) {
    StageBlocks result = {.forward = PassOn(module, context, blocks, stage, false)};
    if (HasBackward(module, blocks, stage)) result.backward = PassOn(module, context, blocks, stage, true);
    return result;
  }
  StageBlocks result = {.forward = Forward(module, context, pieces, stage)};
  const bool has_backward = pieces.back().blocks->backward.has_value();
  if (has_backward) result.backward = Backward(module, context, pieces, stage, false);
  const auto shared = [&](const Bucket& bucket) {
    return bucket.stage == stage && !(bucket.reduce_group.empty() && bucket.tp_group.empty());
  };
  const bool sharded = std::any_of(module.buckets.begin(), module.buckets.end(), shared);
  if (reduces_early && sharded && has_backward) result.last_backward = Backward(module, context, pieces, stage, true);
  return result;
}

}  // namespace planwright
