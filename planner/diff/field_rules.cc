#include "planner/diff/field_rules.h"

#include <algorithm>

namespace planwright {
namespace {

using enum Compare;
using enum Curve;

constexpr std::string_view kMoved = "ranks are laid out otherwise; samples, weights and sums are the same";
constexpr std::string_view kFollows = "follows from other changes";
constexpr std::string_view kProgram = "ranks run other instructions; what they compute is compared layer by layer";
constexpr std::string_view kGroups = "other ranks communicate; what they sum is the same";
constexpr std::string_view kInit = "other initial weights";
constexpr std::string_view kModel = "another model";
constexpr std::string_view kSamples = "other samples are read, or in another order";
constexpr std::string_view kRate = "the learning rate over samples";
constexpr std::string_view kDecay = "the weight decay over samples";
constexpr std::string_view kStorage = "tensors lie otherwise in memory";
constexpr std::string_view kOptimizer = "weights are stepped otherwise";

constexpr FieldRule kRules[] = {
    {"format_version", kValue, kKeeps, "run", "another format of the file"},
    {"name", kValue, kKeeps, "run", "what the plan and its runs are called"},
    {"precision", kValue, kChanges, "arithmetic", "another rounding of all numbers"},
    {"seed", kValue, kChanges, "weights", kInit},
    {"world_size", kValue, kKeeps, "ranks", "another number of processes"},
    {"log_every_steps", kValue, kKeeps, "run", "how often a line of metrics is written"},

    {"cluster.nodes", kValue, kKeeps, "ranks", kMoved},
    {"cluster.gpus_per_node", kValue, kKeeps, "ranks", kMoved},
    {"cluster.gpu", kValue, kKeeps, "ranks", "other devices, with other limits and rates"},

    {"budget.train_samples", kValue, kChanges, "budget", "the training is longer or shorter"},
    {"budget.global_samples", kValue, kChanges, "budget", "each step averages over another number of samples"},
    {"budget.micro_samples", kValue, kKeeps, "budget", "a lane takes its samples in other portions; every token weighs the same"},
    {"budget.sequence_length", kValue, kChanges, "data", "samples have another length"},
    {"budget.microbatches", kValue, kKeeps, "schedule", kFollows},
    {"budget.block_samples", kValue, kKeeps, "schedule", kFollows},
    {"budget.steps", kValue, kKeeps, "budget", kFollows},
    {"budget.samples_past_budget", kValue, kKeeps, "budget", kFollows},
    {"budget.learning_rate.peak", kValue, kRates, "budget", kRate},
    {"budget.learning_rate.min", kValue, kRates, "budget", kRate},
    {"budget.learning_rate.init", kValue, kRates, "budget", kRate},
    {"budget.learning_rate.warmup_samples", kValue, kRates, "budget", kRate},
    {"budget.learning_rate.decay_samples", kValue, kRates, "budget", kRate},
    {"budget.learning_rate.style", kValue, kRates, "budget", kRate},
    {"budget.learning_rate.wsd_decay_samples", kValue, kRates, "budget", kRate},
    {"budget.learning_rate.wsd_style", kValue, kRates, "budget", kRate},
    {"budget.weight_decay.start", kValue, kRates, "budget", kDecay},
    {"budget.weight_decay.end", kValue, kRates, "budget", kDecay},
    {"budget.weight_decay.style", kValue, kRates, "budget", kDecay},
    {"budget.weight_decay.samples", kValue, kRates, "budget", kDecay},
    {"budget.segments", kWhole, kKeeps, "budget", kFollows},
    {"budget.segments[].kind", kPart, kKeeps, "budget", kFollows},
    {"budget.segments[].first_sample", kPart, kKeeps, "budget", kFollows},
    {"budget.segments[].end_sample", kPart, kKeeps, "budget", kFollows},

    {"optimizer.beta1", kValue, kChanges, "arithmetic", kOptimizer},
    {"optimizer.beta2", kValue, kChanges, "arithmetic", kOptimizer},
    {"optimizer.eps", kValue, kChanges, "arithmetic", kOptimizer},
    {"optimizer.clip_grad_norm", kValue, kChanges, "arithmetic", "gradients are clipped at another norm"},

    {"data.kind", kValue, kChanges, "data", kSamples},
    {"data.seed", kValue, kChanges, "data", kSamples},
    {"data.image_token", kValue, kChanges, "data", "another token stands for images"},
    {"data.pad_token", kValue, kChanges, "data", "another token stands for padding"},
    {"data.end_token", kValue, kChanges, "data", "another token ends documents"},
    {"data.vocabulary", kValue, kChanges, "data", "tokens are drawn from another vocabulary"},
    {"data.image_grids", kValue, kChanges, "data", "images of other sizes"},
    {"data.max_images", kValue, kChanges, "data", "other numbers of images in a sample"},
    {"data.classes", kValue, kChanges, "data", kSamples},
    {"data.text_tokens", kValue, kChanges, "data", kSamples},
    {"data.shards", kValue, kChanges, "data", kSamples},
    {"data.window", kValue, kChanges, "data", "documents are shuffled and packed in other windows"},
    {"data.min_patches", kValue, kChanges, "data", "images are resized otherwise"},
    {"data.max_patches", kValue, kChanges, "data", "images are resized otherwise"},
    {"data.path", kValue, kChanges, "data", kSamples},
    {"data.packed_documents", kValue, kChanges, "data", "attention and Mamba state end at other places"},
    {"data.patch", kValue, kChanges, "data", "images are cut into other patches"},
    {"data.pixel_shuffle", kValue, kChanges, "data", "images make another number of tokens"},
    {"data.max_image", kValue, kChanges, "data", "the largest image and the table of positions"},

    {"initialize", kValue, kChanges, "weights", kInit},
    {"initialize.from", kValue, kChanges, "weights", kInit},
    {"initialize.ignore", kValue, kKeeps, "weights", "which tensors of the file may stay unused"},

    {"checkpoint.every_steps", kValue, kKeeps, "checkpoint", "checkpoints are written at other steps"},
    {"checkpoint.common", kWhole, kKeeps, "checkpoint", "checkpoints keep other common state"},
    {"checkpoint.rules", kWhole, kKeeps, "checkpoint", "other ranks write, or other pieces; a checkpoint is read whatever wrote it"},
    {"checkpoint.rules[].module", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].view", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].cut", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].replicated", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].flat", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].stage", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].states", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].parameters", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].parameters[].first", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].parameters[].count", kPart, kKeeps, "checkpoint", kFollows},
    {"checkpoint.rules[].parameters[].stride", kPart, kKeeps, "checkpoint", kFollows},

    {"accumulators", kWhole, kKeeps, "programs", kFollows},
    {"accumulators[].name", kPart, kKeeps, "programs", kFollows},
    {"accumulators[].dtype", kPart, kKeeps, "programs", kFollows},
    {"accumulators[].elements", kPart, kKeeps, "programs", kFollows},
    {"accumulators[].parts", kPart, kKeeps, "programs", kFollows},

    {"symbols", kItems, kKeeps, "memory", "another run-time size"},
    {"symbols[].name", kValue, kKeeps, "memory", kFollows},
    {"symbols[].maximum", kValue, kKeeps, "memory", "memory is kept for another number of rows"},
    {"symbols[].expected", kValue, kKeeps, "memory", "memory is planned for another number of rows"},
    {"symbols[].mean", kValue, kKeeps, "memory", kFollows},
    {"symbols[].what", kValue, kKeeps, "memory", "what the size is called"},

    {"modules", kItems, kChanges, "weights", "another part is trained"},
    {"modules[].name", kValue, kChanges, "weights", kInit},
    {"modules[].model", kValue, kKeeps, "weights", "what the model is called"},
    {"modules[].kind", kValue, kChanges, "weights", kModel},
    {"modules[].has_images", kValue, kChanges, "weights", kModel},
    {"modules[].carries_loss", kValue, kChanges, "weights", kModel},
    {"modules[].constants", kMap, kChanges, "arithmetic", "a number of the model: its weights, initial values or arithmetic"},
    {"modules[].constants.mamba.chunk", kValue, kKeeps, "memory", "the same recurrence in other portions"},
    {"modules[].grid.first_rank", kValue, kKeeps, "ranks", kMoved},
    {"modules[].grid.tp", kValue, kKeeps, "ranks", "each weight is cut over another number of ranks; the sums are the same"},
    {"modules[].grid.cp", kValue, kKeeps, "ranks", "each sequence is cut over another number of ranks; the sums are the same"},
    {"modules[].grid.dp", kValue, kKeeps, "ranks", "another number of lanes share the samples of a step; the sums are the same"},
    {"modules[].grid.pp", kValue, kKeeps, "ranks", "layers are cut into another number of stages"},
    {"modules[].grid.expert_tp", kValue, kKeeps, "ranks", "each expert is cut over another number of ranks; the sums are the same"},
    {"modules[].grid.ep", kValue, kKeeps, "ranks", "experts are spread over another number of ranks"},
    {"modules[].grid.expert_dp", kValue, kKeeps, "ranks", "experts have another number of replicas; the sums are the same"},
    {"modules[].trains_backbone", kValue, kChanges, "weights", "other weights are stepped"},
    {"modules[].trains_projection", kValue, kChanges, "weights", "other weights are stepped"},
    {"modules[].recompute", kValue, kKeeps, "memory", "other activations are computed again instead of kept"},
    {"modules[].parameter_count", kValue, kKeeps, "weights", kFollows},
    {"modules[].projector_count", kValue, kKeeps, "weights", kFollows},
    {"modules[].embed_flops", kValue, kKeeps, "weights", kFollows},
    {"modules[].head_flops", kValue, kKeeps, "weights", kFollows},
    {"modules[].imbalance", kValue, kKeeps, "memory", "memory is planned for another imbalance of experts"},
    {"modules[].layers", kItems, kChanges, "weights", "another layer"},
    {"modules[].layers[].kind", kValue, kChanges, "weights", "a layer of another kind"},
    {"modules[].layers[].frame", kValue, kKeeps, "weights", kFollows},
    {"modules[].layers[].parameters", kValue, kKeeps, "weights", kFollows},
    {"modules[].layers[].forward_flops", kValue, kKeeps, "weights", kFollows},
    {"modules[].layers[].mixing_flops", kValue, kKeeps, "weights", kFollows},
    {"modules[].layers[].expert_row", kValue, kKeeps, "weights", kFollows},
    {"modules[].layers[].stage", kValue, kKeeps, "schedule", "the layer is computed by another pipeline stage"},
    {"modules[].parameters", kItems, kChanges, "weights", "another tensor; draws hang on its name"},
    {"modules[].parameters[].name", kValue, kChanges, "weights", kInit},
    {"modules[].parameters[].file_name", kValue, kChanges, "weights", "weights are loaded from a tensor of another name"},
    {"modules[].parameters[].shape", kValue, kChanges, "weights", kModel},
    {"modules[].parameters[].experts", kValue, kChanges, "weights", kModel},
    {"modules[].parameters[].shard_dim", kValue, kKeeps, "ranks", "the tensor is cut along another dim"},
    {"modules[].parameters[].segments", kValue, kKeeps, "ranks", "the parts of the tensor that are cut by themselves"},
    {"modules[].parameters[].decay", kValue, kChanges, "weights", "weight decay acts on other tensors"},
    {"modules[].parameters[].trained", kValue, kChanges, "weights", "other weights are stepped"},
    {"modules[].parameters[].buffer", kValue, kChanges, "weights", "the tensor is kept in another precision"},
    {"modules[].parameters[].init.kind", kValue, kChanges, "weights", kInit},
    {"modules[].parameters[].init.a", kValue, kChanges, "weights", kInit},
    {"modules[].parameters[].init.b", kValue, kChanges, "weights", kInit},
    {"modules[].storages", kWhole, kKeeps, "memory", kStorage},
    {"modules[].storages[].frame", kPart, kKeeps, "memory", kStorage},
    {"modules[].storages[].slot", kPart, kKeeps, "memory", kStorage},
    {"modules[].storages[].shape", kPart, kKeeps, "memory", kStorage},
    {"modules[].storages[].parameters", kPart, kKeeps, "memory", kStorage},
    {"modules[].storages[].bucket", kPart, kKeeps, "memory", kStorage},
    {"modules[].storages[].offset", kPart, kKeeps, "memory", kStorage},
    {"modules[].storages[].stage", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets", kWhole, kKeeps, "memory", "gradients are summed in other portions"},
    {"modules[].buckets[].name", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].view", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].tp", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].elements", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].reduce_group", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].tp_group", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].shards", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].stage", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].dtype", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].master", kPart, kKeeps, "memory", kStorage},
    {"modules[].buckets[].once_over", kPart, kKeeps, "memory", kStorage},

    {"groups", kItems, kKeeps, "groups", kGroups},
    {"groups[].name", kValue, kKeeps, "groups", kGroups},
    {"groups[].short_name", kValue, kKeeps, "groups", "what the group is called"},
    {"groups[].module", kValue, kKeeps, "groups", kGroups},
    {"groups[].view", kValue, kKeeps, "groups", kGroups},
    {"groups[].axes", kValue, kKeeps, "groups", kGroups},
    {"groups[].ranks", kValue, kKeeps, "groups", kGroups},
    {"groups[].streams", kValue, kKeeps, "groups", "on which streams the group communicates"},

    {"bridges", kItems, kChanges, "bridges", "the language model reads another encoder's output"},
    {"bridges[].name", kValue, kKeeps, "bridges", "what the bridge is called"},
    {"bridges[].from", kValue, kChanges, "bridges", "the language model reads another encoder's output"},
    {"bridges[].to", kValue, kChanges, "bridges", "another module reads the encoder's output"},
    {"bridges[].kind", kValue, kKeeps, "bridges", "samples are dealt to other lanes"},
    {"bridges[].token", kValue, kChanges, "bridges", "the rows take the places of another token"},
    {"bridges[].forward", kWhole, kKeeps, "bridges", "the same samples travel between other ranks"},
    {"bridges[].backward", kWhole, kKeeps, "bridges", "the same gradients travel between other ranks"},

    {"schedule", kItems, kKeeps, "schedule", "another pipeline stage"},
    {"schedule[].module", kValue, kKeeps, "schedule", kFollows},
    {"schedule[].stage", kValue, kKeeps, "schedule", kFollows},
    {"schedule[].warmup", kValue, kKeeps, "schedule", "another number of forwards before the first backward"},
    {"schedule[].order", kWhole, kKeeps, "schedule", "microbatches are computed in another order; their sum is the same"},

    {"blocks", kWhole, kKeeps, "programs", kProgram},
    {"blocks[].name", kPart, kKeeps, "programs", kProgram},
    {"blocks[].module", kPart, kKeeps, "programs", kProgram},
    {"blocks[].inputs", kPart, kKeeps, "programs", kProgram},
    {"blocks[].takes", kPart, kKeeps, "programs", kProgram},
    {"blocks[].body", kPart, kKeeps, "programs", kProgram},
    {"blocks[].outputs", kPart, kKeeps, "programs", kProgram},
    {"blocks[].saved", kPart, kKeeps, "programs", kProgram},
    {"blocks[].probes", kPart, kKeeps, "programs", kProgram},
    {"blocks[].probes[].value", kPart, kKeeps, "programs", kProgram},
    {"blocks[].probes[].name", kPart, kKeeps, "programs", kProgram},
    {"roles", kItems, kKeeps, "programs", "other ranks share a program"},
    {"roles[].name", kValue, kKeeps, "programs", kProgram},
    {"roles[].modules", kValue, kKeeps, "ranks", kMoved},
    {"roles[].ranks", kValue, kKeeps, "ranks", "other ranks share the program"},
    {"roles[].ranks[].first", kPart, kKeeps, "ranks", kMoved},
    {"roles[].ranks[].count", kPart, kKeeps, "ranks", kMoved},
    {"roles[].ranks[].stride", kPart, kKeeps, "ranks", kMoved},
    {"roles[].setup", kWhole, kKeeps, "programs", kProgram},
    {"roles[].step", kWhole, kKeeps, "programs", kProgram},
    {"roles[].teardown", kWhole, kKeeps, "programs", kProgram},
    {"instruction.op", kPart, kKeeps, "programs", kProgram},
    {"instruction.block", kPart, kKeeps, "programs", kProgram},
    {"instruction.frame", kPart, kKeeps, "programs", kProgram},
    {"instruction.microbatch", kPart, kKeeps, "programs", kProgram},
    {"instruction.group", kPart, kKeeps, "programs", kProgram},
    {"instruction.stream", kPart, kKeeps, "programs", kProgram},
    {"instruction.inputs", kPart, kKeeps, "programs", kProgram},
    {"instruction.parameters", kPart, kKeeps, "programs", kProgram},
    {"instruction.gradients", kPart, kKeeps, "programs", kProgram},
    {"instruction.outputs", kPart, kKeeps, "programs", kProgram},
    {"instruction.parts", kPart, kKeeps, "programs", kProgram},
    {"instruction.parts[].bridge", kPart, kKeeps, "programs", kProgram},
    {"instruction.parts[].backward", kPart, kKeeps, "programs", kProgram},
    {"instruction.parts[].send", kPart, kKeeps, "programs", kProgram},
    {"instruction.parts[].value", kPart, kKeeps, "programs", kProgram},
    {"instruction.parts[].sample_rows", kPart, kKeeps, "programs", kProgram},
    {"instruction.parts[].group", kPart, kKeeps, "programs", kProgram},
    {"instruction.parts[].shift", kPart, kKeeps, "programs", kProgram},
    {"instruction.attributes", kPart, kKeeps, "programs", kProgram},  // they follow from constants and layout (V4)
    {"instruction.frees", kPart, kKeeps, "programs", kProgram},
};

}  // namespace

std::span<const FieldRule> FieldRules() { return kRules; }

const FieldRule* RuleOf(std::string_view pattern) {
  const FieldRule* map = nullptr;
  for (const FieldRule& rule : kRules) {
    if (rule.pattern == pattern) return &rule;
    const bool inside = pattern.size() > rule.pattern.size() && pattern.starts_with(rule.pattern) && pattern[rule.pattern.size()] == '.';
    if (rule.compare == kMap && inside) map = &rule;
  }
  return map;
}

std::string InstructionPattern(const std::string& pattern) {
  for (const char* list : {"blocks[].body[]", "roles[].setup[]", "roles[].step[]", "roles[].teardown[]"}) {
    if (pattern.starts_with(list)) return "instruction" + pattern.substr(std::string_view(list).size());
  }
  return pattern;
}

std::string ItemName(std::string_view pattern, const nlohmann::ordered_json& item) {
  if (pattern == "schedule") return item["module"].get<std::string>() + ".s" + std::to_string(item["stage"].get<int>());
  if (pattern == "modules[].layers") return item["frame"];
  return item["name"];
}

}  // namespace planwright
