#include "planner/compile/schedule/blocks/lower_stage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"

namespace planwright {
namespace {

using std::string;

// The embedding, a layer or the head, as a stage calls it.
struct StagePart {
  const LayerBlocks* blocks = nullptr;
  string frame;
  int stage = 0;
  bool makes_stream = false;  // the embedding
};

// Those of all stages, in forward order.
std::vector<StagePart> AllParts(const Module& module, const ModuleBlocks& blocks) {
  std::vector<StagePart> parts = {{&blocks.embedding, module.name + ".embed", 0, true}};
  const std::vector<const LayerBlocks*> layers = BlocksOfLayers(module, blocks);
  for (size_t i = 0; i < layers.size(); ++i)
    parts.push_back({layers[i], module.layers[i].frame, module.layers[i].stage});
  parts.push_back({&blocks.head, module.name + ".head", module.grid.pp - 1});
  return parts;
}

std::vector<StagePart> PartsOf(const Module& module, const ModuleBlocks& blocks, int stage) {
  std::vector<StagePart> parts = AllParts(module, blocks);
  std::erase_if(parts, [&](const StagePart& part) { return part.stage != stage; });
  return parts;
}

string CarryAt(const std::vector<string>& carries, size_t at) { return at < carries.size() ? carries[at] : ""; }

size_t Count(const std::vector<string>& carries, const string& carry) {
  return static_cast<size_t>(std::count(carries.begin(), carries.end(), carry));
}

// A carry where one stage hands it on to the next. What passes there has the type with which it was made.
struct Crossing {
  string carry;
  ValueType type;
  std::optional<ValueType> gradient;  // of what comes back; none: nothing does
};

// The carries that cross into a stage: made before it, and taken in it or behind it. In the order in which the piece
// that makes them gives them.
std::vector<Crossing> CrossingsInto(const Module& module, const ModuleBlocks& blocks, int stage) {
  std::vector<Crossing> crossings;
  const std::vector<StagePart> parts = AllParts(module, blocks);
  const auto is_taken = [&](const string& carry) {
    return std::any_of(parts.begin(), parts.end(), [&](const StagePart& part) {
      return part.stage >= stage && Count(part.blocks->carried.inputs, carry) > 0;
    });
  };
  for (const StagePart& part : parts) {
    if (part.stage >= stage) continue;
    const LayerBlocks& maker = *part.blocks;
    for (size_t i = 0; i < maker.forward.outputs.size(); ++i) {
      const string carry = CarryAt(maker.carried.outputs, i);
      if (carry.empty() || !is_taken(carry)) continue;
      Crossing crossing = {carry, TypeIn(maker.forward, maker.forward.outputs[i]), std::nullopt};
      for (size_t k = 0; maker.backward && k < maker.backward->inputs.size(); ++k) {
        if (CarryAt(maker.carried_back.inputs, k) == carry) crossing.gradient = maker.backward->inputs[k].type;
      }
      // The last one that makes it is the one whose value crosses.
      std::erase_if(crossings, [&](const Crossing& earlier) { return earlier.carry == carry; });
      crossings.push_back(std::move(crossing));
    }
  }
  return crossings;
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

// Values of an evaluation take no gradient.
ValueType TypeFor(Pass pass, ValueType type) {
  if (pass == Pass::kEvaluate) type.gradient.reset();
  return type;
}

// A stage without layers: it hands its inputs on.
Block PassOn(const Module& module, const ModuleBlocks& blocks, int stage, Pass pass) {
  BlockBuilder b(module.name, absl::StrCat(module.name, ".s", stage, SuffixOf(pass)), module.origin);
  const bool backward = pass == Pass::kBackward;
  const Block& embedding = ForwardOf(blocks.embedding, pass);
  std::vector<string> names = {backward ? "dx_out" : "x_in"};
  const ValueType& stream = TypeIn(embedding, embedding.outputs.front());
  backward ? b.InputGradient(names.front(), stream) : b.Input(names.front(), stream);
  for (const Crossing& crossing : CrossingsInto(module, blocks, stage)) {
    if (backward && !crossing.gradient) continue;
    names.push_back(backward ? absl::StrCat("d", crossing.carry, "_out") : crossing.carry + "_in");
    backward ? b.InputGradient(names.back(), *crossing.gradient) : b.Input(names.back(), TypeFor(pass, crossing.type));
  }
  return b.Finish(names, {});
}

Block Forward(const Module& module, const ModuleBlocks& blocks, const std::vector<StagePart>& parts, int stage,
              Pass pass) {
  BlockBuilder f(module.name, absl::StrCat(module.name, ".s", stage, SuffixOf(pass)), module.origin);
  string x = "x_in";
  if (!parts.front().makes_stream) f.Input(x, ForwardOf(*parts.front().blocks, pass).inputs.front().type);
  std::map<string, string> carried;  // by carry: the value that it is so far
  for (const Crossing& crossing : CrossingsInto(module, blocks, stage)) {
    carried[crossing.carry] = crossing.carry + "_in";
    f.Input(crossing.carry + "_in", TypeFor(pass, crossing.type));
  }
  // Other inputs have the same name in all parts. The stage takes each once.
  std::set<string> common;
  for (const StagePart& part : parts) {
    const std::vector<Output>& inputs = ForwardOf(*part.blocks, pass).inputs;
    for (size_t i = part.makes_stream ? 0 : 1; i < inputs.size(); ++i) {
      if (!CarryAt(part.blocks->carried.inputs, i).empty()) continue;
      if (common.insert(inputs[i].name).second) f.Input(inputs[i].name, inputs[i].type);
    }
  }
  std::vector<string> outputs;  // of the last call, without carries
  for (size_t i = 0; i < parts.size(); ++i) {
    const Block& block = ForwardOf(*parts[i].blocks, pass);
    const Carried& of_block = parts[i].blocks->carried;
    std::vector<string> arguments, results;
    for (size_t k = 0; k < block.inputs.size(); ++k) {
      const string carry = CarryAt(of_block.inputs, k);
      arguments.push_back(carry.empty() ? block.inputs[k].name : carried.at(carry));
    }
    if (!parts[i].makes_stream) arguments.front() = x;
    outputs.clear();
    for (size_t k = 0; k < block.outputs.size(); ++k) {
      const string carry = CarryAt(of_block.outputs, k);
      if (carry.empty()) {
        outputs.push_back(i + 1 < parts.size() ? absl::StrCat("x", i) : block.outputs[k]);
        results.push_back(outputs.back());
      } else {
        carried[carry] = absl::StrCat(carry, i);
        results.push_back(carried[carry]);
      }
    }
    f.Call(block, parts[i].frame, arguments, results);
    if (!outputs.empty()) x = outputs.front();
  }
  if (stage + 1 < module.grid.pp) {
    for (const Crossing& crossing : CrossingsInto(module, blocks, stage + 1))
      outputs.push_back(carried.at(crossing.carry));
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
Block Backward(const Module& module, const ModuleBlocks& blocks, const std::vector<StagePart>& parts, int stage,
               bool gives, bool reduces) {
  const size_t first = FirstWithBackward(parts);
  BlockBuilder b(module.name, absl::StrCat(module.name, ".s", stage, ".backward", reduces ? ".last" : ""),
                 module.origin);
  // By carry, and "" for the stream: the gradient so far. A head with a loss makes that of the stream itself; the head
  // of an encoder is given one by the bridge.
  std::map<string, string> gradients;
  const Block& last = *parts.back().blocks->backward;
  if (!last.inputs.empty()) {
    gradients[""] = stage + 1 == module.grid.pp ? last.inputs.front().name : "dx_out";
    b.InputGradient(gradients[""], last.inputs.front().type);
  }
  if (stage + 1 < module.grid.pp) {
    for (const Crossing& crossing : CrossingsInto(module, blocks, stage + 1)) {
      if (!crossing.gradient) continue;
      gradients[crossing.carry] = absl::StrCat("d", crossing.carry, "_out");
      b.InputGradient(gradients[crossing.carry], *crossing.gradient);
    }
  }
  std::vector<std::set<size_t>> finished;
  if (reduces) finished = FinishedBuckets(module, parts);
  std::vector<string> outputs;  // of the last call, without those of carries
  std::vector<Instruction>& body = b.body();
  for (size_t i = parts.size(); i-- > first;) {
    const LayerBlocks& of_part = *parts[i].blocks;
    // Just before the backward that needs it, so that few layers' activations are alive at once.
    if (of_part.recompute) b.Call(*of_part.recompute, parts[i].frame, {}, {});
    std::vector<string> arguments, results;
    for (size_t k = 0; k < of_part.backward->inputs.size(); ++k)
      arguments.push_back(gradients.at(CarryAt(of_part.carried_back.inputs, k)));
    outputs.clear();
    for (size_t k = 0; k < of_part.backward->outputs.size(); ++k) {
      const string carry = CarryAt(of_part.carried_back.outputs, k);
      const bool leaves = i == first;
      if (carry.empty()) {
        outputs.push_back(!leaves                 ? absl::StrCat("dx", i)
                          : parts[i].makes_stream ? of_part.backward->outputs[k]
                                                  : "dx_in");
        results.push_back(outputs.back());
      } else {
        gradients[carry] = absl::StrCat("d", carry, i);
        results.push_back(gradients[carry]);
      }
    }
    b.Call(*of_part.backward, parts[i].frame, arguments, results);
    if (reduces) ReduceFinished(module, finished[i], body);
    if (!outputs.empty()) gradients[""] = outputs.front();
  }
  if (!gives) return b.Finish({}, {});
  for (const Crossing& crossing : CrossingsInto(module, blocks, stage)) {
    if (crossing.gradient) outputs.push_back(gradients.at(crossing.carry));
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

std::vector<string> CarriesInto(const Module& module, const ModuleBlocks& blocks, int stage, bool gradients) {
  std::vector<string> carries;
  for (const Crossing& crossing : CrossingsInto(module, blocks, stage)) {
    if (!gradients || crossing.gradient) carries.push_back(crossing.carry);
  }
  return carries;
}

StageBlocks LowerStage(const Module& module, const ModuleBlocks& blocks, int stage, bool reduces_early) {
  const std::vector<StagePart> parts = PartsOf(module, blocks, stage);
  if (parts.empty()) {
    StageBlocks result = {.forward = PassOn(module, blocks, stage, Pass::kForward)};
    if (HasBackward(module, blocks, stage)) result.backward = PassOn(module, blocks, stage, Pass::kBackward);
    if (blocks.embedding.evaluate) result.evaluate = PassOn(module, blocks, stage, Pass::kEvaluate);
    return result;
  }
  StageBlocks result = {.forward = Forward(module, blocks, parts, stage, Pass::kForward)};
  if (blocks.embedding.evaluate) result.evaluate = Forward(module, blocks, parts, stage, Pass::kEvaluate);
  const bool has_backward = parts.back().blocks->backward.has_value();
  const bool gives = has_backward && GivesGradient(module, blocks, stage);
  if (has_backward) result.backward = Backward(module, blocks, parts, stage, gives, false);
  // Without a bucket that several ranks share, nothing is reduced, and the last microbatch needs no block of its own.
  const auto shared = [&](const Bucket& bucket) {
    return bucket.stage == stage && !(bucket.reduce_group.empty() && bucket.tp_group.empty());
  };
  const bool sharded = std::any_of(module.buckets.begin(), module.buckets.end(), shared);
  if (reduces_early && sharded && has_backward)
    result.last_backward = Backward(module, blocks, parts, stage, gives, true);
  return result;
}

}  // namespace planwright
