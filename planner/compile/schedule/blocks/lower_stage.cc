#include "planner/compile/schedule/blocks/lower_stage.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"

namespace planwright {
namespace {

using std::string;

// The embedding, a layer or the head, as a stage calls it.
struct StagePart {
  const LayerBlocks* blocks = nullptr;
  string frame;
  bool makes_stream = false;  // the embedding
};

// In forward order.
std::vector<StagePart> PartsOf(const Module& module, const ModuleBlocks& blocks, int stage) {
  std::vector<StagePart> parts;
  if (stage == 0) parts.push_back({&blocks.embedding, module.name + ".embed", true});
  for (const LayerSummary& layer : module.layers) {
    if (layer.stage == stage) parts.push_back({&blocks.layers.at(layer.kind), layer.frame});
  }
  if (stage + 1 == module.grid.pp) parts.push_back({&blocks.head, module.name + ".head"});
  return parts;
}

// Index of the first part with a backward. All parts behind it have one too, because the gradient passes through them.
size_t FirstWithBackward(const std::vector<StagePart>& parts) {
  size_t first = parts.size();
  while (first > 0 && parts[first - 1].blocks->backward) --first;
  return first;
}

// For each part: the buckets that are complete behind its backward. Backwards run from the last part to the first, so
// a bucket is complete behind the first part that has a backward and a storage in it.
std::vector<std::set<size_t>> FinishedBuckets(const Module& module, const std::vector<StagePart>& parts) {
  std::map<std::string_view, size_t> index_of_frame;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].blocks->backward) index_of_frame.emplace(parts[i].frame, i);
  }
  std::map<size_t, size_t> first;  // by bucket
  for (const Storage& storage : module.storages) {
    const auto index = storage.bucket >= 0 ? index_of_frame.find(storage.frame) : index_of_frame.end();
    if (index == index_of_frame.end()) continue;
    const auto known = first.emplace(storage.bucket, index->second).first;
    known->second = std::min(known->second, index->second);
  }
  std::vector<std::set<size_t>> finished(parts.size());
  for (const auto& [bucket, part] : first) finished[part].insert(bucket);
  return finished;
}

// What runs the layers of a stage: its training, or an evaluation.
enum class Pass { kForward, kBackward, kEvaluate };

const char* SuffixOf(Pass pass) {
  return pass == Pass::kForward ? ".forward" : pass == Pass::kBackward ? ".backward" : ".evaluate";
}

const Block& ForwardOf(const LayerBlocks& blocks, Pass pass) {
  return pass == Pass::kEvaluate ? *blocks.evaluate : blocks.forward;
}

// A stage without layers: it hands its input on.
Block PassOn(const Module& module, const ModuleBlocks& blocks, int stage, Pass pass) {
  BlockBuilder b(module.name, absl::StrCat(module.name, ".s", stage, SuffixOf(pass)), module.origin);
  const bool backward = pass == Pass::kBackward;
  const Block& embedding = ForwardOf(blocks.embedding, pass);
  const string name = backward ? "dx_out" : "x_in";
  const ValueType& stream = TypeIn(embedding, embedding.outputs.front());
  backward ? b.InputGradient(name, stream) : b.Input(name, stream);
  return b.Finish({name}, {});
}

Block Forward(const Module& module, const std::vector<StagePart>& parts, int stage, Pass pass) {
  BlockBuilder f(module.name, absl::StrCat(module.name, ".s", stage, SuffixOf(pass)), module.origin);
  string x = "x_in";
  if (!parts.front().makes_stream) f.Input(x, ForwardOf(*parts.front().blocks, pass).inputs.front().type);
  // Inputs other than the stream have the same name in all parts. The stage takes each once.
  std::set<string> common;
  for (const StagePart& part : parts) {
    const std::vector<Output>& inputs = ForwardOf(*part.blocks, pass).inputs;
    for (size_t i = part.makes_stream ? 0 : 1; i < inputs.size(); ++i) {
      if (common.insert(inputs[i].name).second) f.Input(inputs[i].name, inputs[i].type);
    }
  }
  std::vector<string> outputs;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Block& block = ForwardOf(*parts[i].blocks, pass);
    std::vector<string> arguments;
    for (const Output& input : block.inputs) arguments.push_back(input.name);
    if (!parts[i].makes_stream) arguments.front() = x;
    outputs.clear();
    for (const string& output : block.outputs) outputs.push_back(i + 1 < parts.size() ? absl::StrCat("x", i) : output);
    f.Call(block, parts[i].frame, arguments, outputs);
    if (!outputs.empty()) x = outputs.front();
  }
  return f.Finish(outputs, {});
}

// Appends the reductions of buckets that the call before them completed.
void ReduceFinished(const Module& module, const std::set<size_t>& finished, std::vector<Instruction>& body) {
  for (size_t bucket : finished) {
    std::vector<Instruction> reduce = ReduceBucket(module, bucket);
    for (Instruction& instruction : reduce) instruction.stream = kReduceStream;
    std::move(reduce.begin(), reduce.end(), std::back_inserter(body));
  }
}

// `gives`: whether what is before the stage takes the gradients of its inputs. An embedding that does not learn takes
// none of what it has made.
Block Backward(const Module& module, const std::vector<StagePart>& parts, int stage, bool gives, bool reduces) {
  const size_t first = FirstWithBackward(parts);
  BlockBuilder b(module.name, absl::StrCat(module.name, ".s", stage, ".backward", reduces ? ".last" : ""),
                 module.origin);
  // A head with a loss makes its gradient itself; the head of an encoder is given one by the bridge.
  string dx;
  const Block& last = *parts.back().blocks->backward;
  if (!last.inputs.empty()) {
    dx = stage + 1 == module.grid.pp ? last.inputs.front().name : "dx_out";
    b.InputGradient(dx, last.inputs.front().type);
  }
  std::vector<std::set<size_t>> finished;
  if (reduces) finished = FinishedBuckets(module, parts);
  std::vector<string> outputs;
  std::vector<Instruction>& body = b.body();
  for (size_t i = parts.size(); i-- > first;) {
    const LayerBlocks& blocks = *parts[i].blocks;
    // Just before the backward that needs it, so that few layers' activations are alive at once.
    if (blocks.recompute) b.Call(*blocks.recompute, parts[i].frame, {}, {});
    outputs.clear();
    for (const string& output : blocks.backward->outputs) {
      const bool leaves = i == first;
      outputs.push_back(!leaves ? absl::StrCat("dx", i) : parts[i].makes_stream ? output : "dx_in");
    }
    b.Call(*blocks.backward, parts[i].frame, dx.empty() ? std::vector<string>{} : std::vector<string>{dx}, outputs);
    if (reduces) ReduceFinished(module, finished[i], body);
    if (!outputs.empty()) dx = outputs.front();
  }
  return b.Finish(gives ? outputs : std::vector<string>(), {});
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

// An empty stage passes a gradient on if the stage before it takes one.
bool HasBackward(const Module& module, const ModuleBlocks& blocks, int stage) {
  const std::vector<StagePart> parts = PartsOf(module, blocks, stage);
  return parts.empty() ? GivesGradient(module, blocks, stage) : parts.back().blocks->backward.has_value();
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

bool GivesGradient(const Module& module, const ModuleBlocks& blocks, int stage) {
  const std::vector<StagePart> parts = PartsOf(module, blocks, stage);
  if (parts.empty()) return HasBackward(module, blocks, stage - 1);
  return FirstWithBackward(parts) == 0 && !parts.front().blocks->backward->outputs.empty() &&
         (stage == 0 || HasBackward(module, blocks, stage - 1));
}

StageBlocks LowerStage(const Module& module, const ModuleBlocks& blocks, int stage, bool reduces_early) {
  const std::vector<StagePart> parts = PartsOf(module, blocks, stage);
  if (parts.empty()) {
    StageBlocks result = {.forward = PassOn(module, blocks, stage, Pass::kForward)};
    if (HasBackward(module, blocks, stage)) result.backward = PassOn(module, blocks, stage, Pass::kBackward);
    if (blocks.embedding.evaluate) result.evaluate = PassOn(module, blocks, stage, Pass::kEvaluate);
    return result;
  }
  StageBlocks result = {.forward = Forward(module, parts, stage, Pass::kForward)};
  if (blocks.embedding.evaluate) result.evaluate = Forward(module, parts, stage, Pass::kEvaluate);
  const bool has_backward = parts.back().blocks->backward.has_value();
  const bool gives = has_backward && GivesGradient(module, blocks, stage);
  if (has_backward) result.backward = Backward(module, parts, stage, gives, false);
  // Without a bucket that several ranks share, nothing is reduced, and the last microbatch needs no block of its own.
  const auto shared = [&](const Bucket& bucket) {
    return bucket.stage == stage && !(bucket.reduce_group.empty() && bucket.tp_group.empty());
  };
  const bool sharded = std::any_of(module.buckets.begin(), module.buckets.end(), shared);
  if (reduces_early && sharded && has_backward) result.last_backward = Backward(module, parts, stage, gives, true);
  return result;
}

}  // namespace planwright
