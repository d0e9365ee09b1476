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

// What passes from one stage to the next: the stream by this name, carries by theirs.
constexpr char kStream[] = "x";

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

// What value number `at` of a part passes on, or is the gradient of. What a head makes ends the stream.
string Passed(const std::vector<string>& carries, size_t at) {
  return at < carries.size() && !carries[at].empty() ? carries[at] : kStream;
}

// One value that a stage hands on to the next. It has the type with which it was made.
struct Crossing {
  string name;
  ValueType type;
  std::optional<ValueType> gradient;  // of what comes back; none: nothing does
};

// What crosses into a stage: the stream, and behind it the carries that are made before it, and taken in it or behind
// it. In the order in which they are first made. `parts`: of all stages.
std::vector<Crossing> CrossingsInto(const std::vector<StagePart>& parts, int stage) {
  const auto is_taken = [&](const string& name) {
    return name == kStream || std::any_of(parts.begin(), parts.end(), [&](const StagePart& part) {
             const std::vector<string>& taken = part.blocks->carried.inputs;
             return part.stage >= stage && std::find(taken.begin(), taken.end(), name) != taken.end();
           });
  };
  struct Made {
    const LayerBlocks* by = nullptr;
    size_t at = 0;  // of its outputs
  };
  std::vector<std::pair<string, Made>> made;  // the last one that makes it is the one whose value crosses
  for (const StagePart& part : parts) {
    if (part.stage >= stage) break;
    for (size_t i = 0; i < part.blocks->forward.outputs.size(); ++i) {
      const string name = Passed(part.blocks->carried.outputs, i);
      const auto known = std::find_if(made.begin(), made.end(), [&](const auto& each) { return each.first == name; });
      known == made.end() ? void(made.emplace_back(name, Made{part.blocks, i}))
                          : void(known->second = {part.blocks, i});
    }
  }
  std::vector<Crossing> crossings;
  for (const auto& [name, maker] : made) {
    if (!is_taken(name)) continue;
    const Block& forward = maker.by->forward;
    Crossing& crossing = crossings.emplace_back(Crossing{name, TypeIn(forward, forward.outputs[maker.at]), {}});
    const std::optional<Block>& backward = maker.by->backward;
    for (size_t k = 0; backward && k < backward->inputs.size(); ++k) {
      if (Passed(maker.by->carried_back.inputs, k) == name) crossing.gradient = backward->inputs[k].type;
    }
  }
  return crossings;
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

// Values of an evaluation take no gradient.
ValueType TypeFor(bool evaluates, ValueType type) {
  if (evaluates) type.gradient.reset();
  return type;
}

// What blocks of a stage are made of.
struct StageParts {
  const Module& module;
  int stage = 0;
  std::vector<StagePart> parts;
  std::vector<Crossing> into, onwards;  // from the stage before, and to the next one

  string BlockNamed(const char* suffix) const { return absl::StrCat(module.name, ".s", stage, suffix); }
  bool last() const { return stage + 1 == module.grid.pp; }
};

// A stage without layers hands its inputs on. `evaluates`: it is of an evaluation, not of training.
Block Forward(const StageParts& of, bool evaluates) {
  const auto block_of = [&](const StagePart& part) -> const Block& {
    return evaluates ? *part.blocks->evaluate : part.blocks->forward;
  };
  BlockBuilder f(of.module.name, of.BlockNamed(evaluates ? ".evaluate" : ".forward"), of.module.origin);
  std::map<string, string> passed;  // the stream and carries: the values that they are so far
  for (const Crossing& crossing : of.into) {
    passed[crossing.name] = crossing.name + "_in";
    f.Input(passed[crossing.name], TypeFor(evaluates, crossing.type));
  }
  const auto is_passed = [](const StagePart& part, size_t input) {
    return (input == 0 && !part.makes_stream) || Passed(part.blocks->carried.inputs, input) != kStream;
  };
  // Other inputs have the same name in all parts. The stage takes each once.
  std::set<string> common;
  for (const StagePart& part : of.parts) {
    const std::vector<Output>& inputs = block_of(part).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!is_passed(part, i) && common.insert(inputs[i].name).second) f.Input(inputs[i].name, inputs[i].type);
    }
  }
  std::vector<string> outputs;  // of the last call
  for (size_t i = 0; i < of.parts.size(); ++i) {
    const StagePart& part = of.parts[i];
    const Block& block = block_of(part);
    std::vector<string> arguments;
    for (size_t k = 0; k < block.inputs.size(); ++k)
      arguments.push_back(is_passed(part, k) ? passed.at(Passed(part.blocks->carried.inputs, k))
                                             : block.inputs[k].name);
    outputs.clear();
    for (size_t k = 0; k < block.outputs.size(); ++k) {
      const string name = Passed(part.blocks->carried.outputs, k);
      const bool leaves = i + 1 == of.parts.size() && name == kStream;
      outputs.push_back(leaves ? block.outputs[k] : absl::StrCat(name, i));
      passed[name] = outputs.back();
    }
    f.Call(block, part.frame, arguments, outputs);
  }
  if (of.last()) return f.Finish(outputs, {});
  outputs.clear();
  for (const Crossing& crossing : of.onwards) outputs.push_back(passed.at(crossing.name));
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

// A part without a backward is passed by: so a gradient of a carry passes layers that do not learn.
Block Backward(const StageParts& of, bool reduces) {
  BlockBuilder b(of.module.name, of.BlockNamed(reduces ? ".backward.last" : ".backward"), of.module.origin);
  std::map<string, string> gradients;  // of the stream and of carries, so far
  for (const Crossing& crossing : of.onwards) {
    if (!crossing.gradient) continue;
    gradients[crossing.name] = absl::StrCat("d", crossing.name, "_out");
    b.InputGradient(gradients[crossing.name], *crossing.gradient);
  }
  // A head with a loss makes its gradient itself; the head of an encoder is given one by the bridge.
  for (size_t k = 0; of.last() && k < of.parts.back().blocks->backward->inputs.size(); ++k) {
    const Output& given = of.parts.back().blocks->backward->inputs[k];
    gradients[kStream] = given.name;
    b.InputGradient(given.name, given.type);
  }
  std::vector<std::set<size_t>> finished;
  if (reduces) finished = FinishedBuckets(of.module, of.parts);
  size_t first = 0;
  while (first < of.parts.size() && !of.parts[first].blocks->backward) ++first;
  std::vector<string> outputs;  // of the last call
  std::vector<Instruction>& body = b.body();
  for (size_t i = of.parts.size(); i-- > first;) {
    const StagePart& part = of.parts[i];
    const LayerBlocks& blocks = *part.blocks;
    if (!blocks.backward) continue;
    // Just before the backward that needs it, so that few layers' activations are alive at once.
    if (blocks.recompute) b.Call(*blocks.recompute, part.frame, {}, {});
    std::vector<string> arguments;
    for (size_t k = 0; k < blocks.backward->inputs.size(); ++k)
      arguments.push_back(gradients.at(Passed(blocks.carried_back.inputs, k)));
    outputs.clear();
    for (size_t k = 0; k < blocks.backward->outputs.size(); ++k) {
      const string name = Passed(blocks.carried_back.outputs, k);
      const bool leaves = i == first && name == kStream;
      outputs.push_back(!leaves             ? absl::StrCat("d", name, i)
                        : part.makes_stream ? blocks.backward->outputs[k]
                                            : "dx_in");
      gradients[name] = outputs.back();
    }
    b.Call(*blocks.backward, part.frame, arguments, outputs);
    if (reduces) ReduceFinished(of.module, finished[i], body);
  }
  // The gradient of what came over bridges, if the embedding has one.
  if (of.stage == 0) return b.Finish(first == 0 ? outputs : std::vector<string>(), {});
  outputs.clear();
  for (const Crossing& crossing : of.into) {
    if (crossing.gradient) outputs.push_back(gradients.at(crossing.name));
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

StageBlocks LowerStage(const Module& module, const ModuleBlocks& blocks, int stage, bool reduces_early) {
  StageParts of = {.module = module, .stage = stage, .parts = AllParts(module, blocks)};
  of.into = CrossingsInto(of.parts, stage);
  if (!of.last()) of.onwards = CrossingsInto(of.parts, stage + 1);
  std::erase_if(of.parts, [&](const StagePart& part) { return part.stage != stage; });
  StageBlocks result = {.forward = Forward(of, false)};
  for (const Crossing& crossing : of.into) {
    result.takes.push_back(crossing.name);
    if (crossing.gradient) result.gives_back.push_back(crossing.name);
  }
  if (blocks.embedding.evaluate) result.evaluate = Forward(of, true);
  const auto has_backward = [](const StagePart& part) { return part.blocks->backward.has_value(); };
  if (result.gives_back.empty() && std::none_of(of.parts.begin(), of.parts.end(), has_backward)) return result;
  result.backward = Backward(of, false);
  // Without a bucket that several ranks share, nothing is reduced, and the last microbatch needs no block of its own.
  const auto shared = [&](const Bucket& bucket) {
    return bucket.stage == stage && !(bucket.reduce_group.empty() && bucket.tp_group.empty());
  };
  if (reduces_early && std::any_of(module.buckets.begin(), module.buckets.end(), shared))
    result.last_backward = Backward(of, true);
  return result;
}

}  // namespace planwright
