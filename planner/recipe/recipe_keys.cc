#include "planner/recipe/recipe_keys.h"

#include "absl/strings/str_split.h"
#include "planner/diagnostics/text.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

using enum KeyType;
using enum Need;
using Bound = KeyRange::Bound;

constexpr KeyRange kAny{};
constexpr KeyRange kPositive{Bound::kExclusive, Bound::kNone, 0, 0};
constexpr KeyRange kFromZero{Bound::kInclusive, Bound::kNone, 0, 0};
constexpr KeyRange kCountFromZero{Bound::kInclusive, Bound::kInclusive, 0, static_cast<double>(kLargestNumber)};
constexpr KeyRange kCountFromOne{Bound::kInclusive, Bound::kInclusive, 1, static_cast<double>(kLargestNumber)};
constexpr KeyRange kFromOne{Bound::kInclusive, Bound::kNone, 1, 0};
constexpr KeyRange kBelowOne{Bound::kInclusive, Bound::kExclusive, 0, 1};
// Sizes beyond this are slips of the keyboard, and products of a few of them would leave 64 bits.
constexpr KeyRange kSize{Bound::kInclusive, Bound::kInclusive, 1, 16777216};
// Layers and microbatches are listed one by one in a plan: beyond these a plan would fill the memory before it is refused.
constexpr KeyRange kLayers{Bound::kInclusive, Bound::kInclusive, 1, static_cast<double>(kMostLayers)};
constexpr KeyRange kBatch{Bound::kInclusive, Bound::kInclusive, 1, 65536};
// Samples of a whole training: doubles count them one by one, and sums stay far from 64 bits.
constexpr KeyRange kSamples{Bound::kInclusive, Bound::kInclusive, 1, 1e15};
constexpr KeyRange kSamplesOrNone{Bound::kInclusive, Bound::kInclusive, 0, 1e15};
constexpr KeyRange kImageSide{Bound::kInclusive, Bound::kInclusive, 1, static_cast<double>(kMostGridSide)};
constexpr KeyRange kClassTokens{Bound::kInclusive, Bound::kInclusive, 1, 4096};
constexpr KeyRange kShuffle{Bound::kInclusive, Bound::kInclusive, 1, static_cast<double>(kMostPixelShuffle)};
constexpr KeyRange kCount{Bound::kInclusive, Bound::kInclusive, 0, 16777216};

// Words of layer kinds, and of their letters what they mean.
#define LAYER(id, letter, word, title) "|" word
#define ENCODER_LAYER(letter, word, title) "|" word
constexpr char kRecompute[] = "none|full"
#include "planner/plan/layer_kinds.def"
    ;
#define LAYER(id, letter, word, title) "; " letter " " title
constexpr char kPatternHelp[] = "one character a layer, in quotes"
#include "planner/plan/layer_kinds.def"
    ;

constexpr KeySpec kKeys[] = {
    {"name", "", kString, kRequired, "", kAny, "", "what plans and runs of this recipe are called"},
    {"extends", "", kStrings, kOptional, "", kAny, "",
     "recipes this one builds on, beside this file or absolute; maps merge, lists replace, later wins"},

    {"cluster", "", kMap, kOptional, "", kAny, "", "the machines"},
    {"cluster.nodes", "", kInteger, kOptional, "1", kSize, "", "how many nodes"},
    {"cluster.gpus_per_node", "", kInteger, kOptional, "8", kSize, "", "ranks on each node"},
    {"cluster.gpu", "", kChoice, kOptional, "none", kAny, "none|a100_sxm|h100_sxm|h200_sxm",
     "the device, which sets memory limits and rates; none: CPU ranks"},

    {"models", "", kNamedMaps, kOptional, "", kAny, "", "model definitions that modules name"},
    {"models.<name>.kind", "", kChoice, kRequired, "", kAny, "radio_vit|hybrid_lm", "which family the model is of"},

    {"models.<name>.layers", "radio_vit", kInteger, kRequired, "", kLayers, "", "transformer blocks"},
    {"models.<name>.hidden", "radio_vit", kInteger, kRequired, "", kSize, "", "width of the residual stream"},
    {"models.<name>.heads", "radio_vit", kInteger, kRequired, "", kSize, "", "attention heads; they divide `hidden`"},
    {"models.<name>.ffn", "radio_vit", kInteger, kRequired, "", kSize, "", "width inside the MLP"},
    {"models.<name>.patch", "radio_vit", kInteger, kRequired, "", kSize, "", "side of a patch in pixels"},
    {"models.<name>.class_tokens", "radio_vit", kInteger, kRequired, "", kClassTokens, "",
     "tokens put before each image, dropped behind the encoder"},
    {"models.<name>.max_image", "radio_vit", kInteger, kRequired, "", kImageSide, "",
     "largest side of an image in pixels; sets the table of positions"},
    {"models.<name>.pixel_shuffle", "radio_vit", kInteger, kOptional, "2", kShuffle, "",
     "side of the square of patches that becomes one image token"},
    {"models.<name>.positions", "radio_vit", kChoice, kOptional, "interpolate", kAny, "interpolate|crop",
     "how the table of positions meets an image: resized, or a random crop (the training-time augmentation)"},
    {"models.<name>.norm_eps", "radio_vit", kNumber, kOptional, "1.0e-6", kPositive, "", "epsilon of the layer norms"},
    {"models.<name>.init_std", "radio_vit", kNumber, kOptional, "0.02", kPositive, "", "standard deviation of initial linear weights"},
    {"models.<name>.projector", "radio_vit", kMap, kRequired, "", kAny, "", "from image tokens to the language model's width"},
    {"models.<name>.projector.kind", "", kChoice, kOptional, "mlp", kAny, "mlp", "norm, linear, squared ReLU, linear"},
    {"models.<name>.projector.hidden", "", kInteger, kRequired, "", kSize, "", "width inside the projector"},
    {"models.<name>.projector.norm_eps", "", kNumber, kOptional, "1.0e-5", kPositive, "", "epsilon of its norm"},

    {"models.<name>.pattern", "hybrid_lm", kString, kRequired, "", kAny, "", kPatternHelp},
    {"models.<name>.hidden", "hybrid_lm", kInteger, kRequired, "", kSize, "", "width of the residual stream"},
    {"models.<name>.vocabulary", "hybrid_lm", kInteger, kRequired, "", kSize, "", "rows of the embedding and of the output"},
    {"models.<name>.init_std", "hybrid_lm", kNumber, kOptional, "0.02", kPositive, "", "standard deviation of initial linear weights"},
    {"models.<name>.norm_eps", "hybrid_lm", kNumber, kOptional, "1.0e-5", kPositive, "", "epsilon of the RMS norms"},
    {"models.<name>.attention", "hybrid_lm", kMap, kOptional, "", kAny, "", "sizes of * layers; required if the pattern has one"},
    {"models.<name>.attention.heads", "", kInteger, kRequired, "", kSize, "", "query heads"},
    {"models.<name>.attention.head_dim", "", kInteger, kRequired, "", kSize, "", "size of a head"},
    {"models.<name>.attention.kv_groups", "", kInteger, kRequired, "", kSize, "", "key and value heads; they divide `heads`"},
    {"models.<name>.mamba", "hybrid_lm", kMap, kOptional, "", kAny, "", "sizes of M layers; required if the pattern has one"},
    {"models.<name>.mamba.heads", "", kInteger, kRequired, "", kSize, "", "heads"},
    {"models.<name>.mamba.head_dim", "", kInteger, kRequired, "", kSize, "", "size of a head"},
    {"models.<name>.mamba.groups", "", kInteger, kRequired, "", kSize, "", "groups of heads that share B and C; they divide `heads`"},
    {"models.<name>.mamba.state", "", kInteger, kRequired, "", kSize, "", "size of the state"},
    {"models.<name>.mamba.conv", "", kInteger, kOptional, "4", kSize, "", "width of the causal convolution"},
    {"models.<name>.mamba.chunk", "", kInteger, kOptional, "128", kSize, "", "tokens of one chunk of the scan"},
    {"models.<name>.moe", "hybrid_lm", kMap, kOptional, "", kAny, "", "sizes of E layers; required if the pattern has one"},
    {"models.<name>.moe.experts", "", kInteger, kRequired, "", kSize, "", "routed experts"},
    {"models.<name>.moe.top_k", "", kInteger, kRequired, "", kSize, "", "experts of a token"},
    {"models.<name>.moe.ffn", "", kInteger, kRequired, "", kSize, "", "width inside a routed expert"},
    {"models.<name>.moe.shared_ffn", "", kInteger, kRequired, "", kSize, "", "width inside the shared expert"},
    {"models.<name>.moe.scale", "", kNumber, kOptional, "1.0", kPositive, "", "factor on the routed experts' weights"},
    {"models.<name>.moe.aux_loss", "", kNumber, kOptional, "0.0", kFromZero, "", "coefficient of the load-balancing loss"},
    {"models.<name>.moe.bias_rate", "", kNumber, kOptional, "0.0", kFromZero, "", "step of the experts' selection bias"},
    {"models.<name>.moe.imbalance", "", kNumber, kOptional, "2.0", kFromOne, "",
     "rows that memory is planned for on the busiest rank, over the mean"},

    {"modules", "", kNamedMaps, kRequired, "", kAny, "", "the parts that are trained together, each on its own ranks"},
    {"modules.<name>.model", "", kString, kRequired, "", kAny, "", "a name from `models`"},
    {"modules.<name>.placement", "", kMap, kRequired, "", kAny, "", "the ranks of the module"},
    {"modules.<name>.placement.first_rank", "", kInteger, kRequired, "", kCount, "", "its first rank"},
    {"modules.<name>.placement.ranks", "", kInteger, kRequired, "", kSize, "", "how many ranks in a row"},
    {"modules.<name>.parallel", "", kMap, kOptional, "", kAny, "", "sizes of the module's grid"},
    {"modules.<name>.parallel.tp", "", kInteger, kOptional, "1", kSize, "", "tensor parallel"},
    {"modules.<name>.parallel.cp", "", kInteger, kOptional, "1", kSize, "", "context parallel"},
    {"modules.<name>.parallel.pp", "", kInteger, kOptional, "1", kSize, "", "pipeline parallel"},
    {"modules.<name>.parallel.dp", "", kInteger, kOptional, "", kSize, "", "data parallel; derived, and checked if given"},
    {"modules.<name>.parallel.ep", "", kInteger, kOptional, "1", kSize, "", "expert parallel"},
    {"modules.<name>.parallel.expert_tp", "", kInteger, kOptional, "1", kSize, "", "tensor parallel inside experts"},
    {"modules.<name>.parallel.stage_layers", "", kIntegers, kOptional, "", {Bound::kInclusive, Bound::kInclusive, 0, 4096}, "",
     "layers of each pipeline stage, in order; instead of an even split"},
    {"modules.<name>.parallel.first_stage_layers", "", kInteger, kOptional, "", {Bound::kInclusive, Bound::kInclusive, 0, 4096}, "",
     "layers of the first pipeline stage; the others share the rest evenly"},
    {"modules.<name>.parallel.last_stage_layers", "", kInteger, kOptional, "", {Bound::kInclusive, Bound::kInclusive, 0, 4096}, "",
     "layers of the last pipeline stage; the others share the rest evenly"},
    {"modules.<name>.recompute", "", kStrings, kOptional, "none", kAny, kRecompute,
     "layers whose forward is run again in the backward pass to save memory: none, full, or a list of layer kinds (block: an encoder's)"},
    {"modules.<name>.train", "", kMap, kOptional, "", kAny, "", "which parts learn"},
    {"modules.<name>.train.backbone", "", kChoice, kOptional, "trained", kAny, "trained|frozen", "all but the projection"},
    {"modules.<name>.train.projection", "", kChoice, kOptional, "trained", kAny, "trained|frozen", "an encoder's projector"},

    {"bridges", "", kListOfMaps, kOptional, "", kAny, "", "which module's output another module reads"},
    {"bridges[].from", "", kString, kRequired, "", kAny, "", "the module that sends"},
    {"bridges[].to", "", kString, kRequired, "", kAny, "", "the module that receives"},

    {"bridges[].token", "", kInteger, kOptional, "", kCountFromZero, "",
     "the token id whose places its rows take; data.image_token if not given; needed with several encoders"},

    {"batch", "", kMap, kRequired, "", kAny, "", "sizes of a step"},
    {"batch.global_samples", "", kInteger, kRequired, "", kBatch, "", "samples of one optimizer step"},
    {"batch.micro_samples", "", kInteger, kOptional, "1", kSize, "", "samples a language lane takes at once"},
    {"batch.sequence_length", "", kInteger, kRequired, "", {Bound::kInclusive, Bound::kInclusive, 2, 16777216}, "", "tokens of a sample"},

    {"budget", "", kMap, kRequired, "", kAny, "", "how long to train, and at what rates; all in samples"},
    {"budget.train_samples", "", kInteger, kRequired, "", kSamples, "", "samples to train on; the last step is a full batch"},
    {"budget.learning_rate", "", kMap, kRequired, "", kAny, "", "the learning rate over samples"},
    {"budget.learning_rate.peak", "", kNumber, kRequired, "", kFromZero, "", "the highest rate"},
    {"budget.learning_rate.min", "", kNumber, kOptional, "0.0", kFromZero, "", "the rate after the decay"},
    {"budget.learning_rate.init", "", kNumber, kOptional, "0.0", kFromZero, "", "the rate the warmup starts from"},
    {"budget.learning_rate.warmup_samples", "", kInteger, kOptional, "", kSamplesOrNone, "", "length of the warmup"},
    {"budget.learning_rate.warmup_fraction", "", kNumber, kOptional, "", kBelowOne, "", "the same as a part of decay_samples"},
    {"budget.learning_rate.decay_samples", "", kInteger, kOptional, "", kSamples, "",
     "the sample at which the decay ends (an end, not a length); train_samples if not given"},
    {"budget.learning_rate.style", "", kChoice, kOptional, "constant", kAny, "constant|linear|cosine|inverse_sqrt|wsd",
     "shape between warmup and end"},
    {"budget.learning_rate.wsd", "", kMap, kOptional, "", kAny, "", "the last segment of style wsd"},
    {"budget.learning_rate.wsd.decay_samples", "", kInteger, kOptional, "", kSamples, "", "its length"},
    {"budget.learning_rate.wsd.style", "", kChoice, kOptional, "", kAny, "linear|cosine|exponential|minus_sqrt", "its shape"},
    {"budget.weight_decay", "", kMap, kOptional, "", kAny, "", "weight decay over samples; ramps end at train_samples"},
    {"budget.weight_decay.start", "", kNumber, kOptional, "0.0", kFromZero, "", "at the first sample"},
    {"budget.weight_decay.end", "", kNumber, kOptional, "0.0", kFromZero, "", "at the last sample"},
    {"budget.weight_decay.style", "", kChoice, kOptional, "constant", kAny, "constant|linear|cosine", "shape between the two"},

    {"optimizer", "", kMap, kOptional, "", kAny, "", "the optimizer"},
    {"optimizer.name", "", kChoice, kOptional, "adamw", kAny, "adamw", "which one"},
    {"optimizer.betas", "", kNumberPair, kOptional, "[0.9, 0.95]", kBelowOne, "", "decay of the two moments"},
    {"optimizer.eps", "", kNumber, kOptional, "1.0e-8", kPositive, "", "added to the denominator"},
    {"optimizer.clip_grad_norm", "", kNumber, kOptional, "1.0", kPositive, "", "largest norm of the gradient over all modules"},

    {"gradients", "", kMap, kOptional, "", kAny, "", "how gradients are summed"},
    {"gradients.reduce_dtype", "", kChoice, kOptional, "fp32", kAny, "fp32|bf16", "type they travel in"},
    {"gradients.overlap_reduce", "", kBool, kOptional, "false", kAny, "", "reduce behind the backward pass"},
    {"gradients.overlap_gather", "", kBool, kOptional, "false", kAny, "", "gather parameters behind the forward pass"},
    {"gradients.buckets", "", kInteger, kOptional, "1", kSize, "", "parts a module's gradients are summed in"},

    {"precision", "", kMap, kOptional, "", kAny, "", "types of numbers"},
    {"precision.params", "", kChoice, kOptional, "bf16", kAny, "bf16|fp32|fp64", "of parameters and activations; fp64 means everything"},

    {"data", "", kMap, kRequired, "", kAny, "", "where samples come from"},
    {"data.kind", "", kChoice, kOptional, "mock", kAny, "mock|webdataset|recorded", "made up and learnable; tar shards; a stored batch"},
    {"data.seed", "", kInteger, kOptional, "1234", kCountFromZero, "", "of every draw: weights, samples, positions"},
    {"data.image_token", "", kInteger, kOptional, "", kCountFromZero, "", "the token id whose places take image rows; required, except with bytes and for made-up text without an encoder"},
    {"data.packed_documents", "", kBool, kOptional, "false", kAny, "",
     "attention and Mamba state end where a document ends; needs micro_samples 1"},
    {"data.image_grids", "mock", kIntegerPairs, kOptional, "", kSize, "", "[rows, columns] of patches that images are drawn from"},
    {"data.max_images", "mock", kInteger, kOptional, "3", {Bound::kInclusive, Bound::kInclusive, 0, 3}, "", "most images of a sample"},
    {"data.classes", "mock", kInteger, kOptional, "8", kSize, "", "kinds of image, each with its own pattern and text"},
    {"data.text_tokens", "mock", kInteger, kOptional, "8", kSize, "", "length of the text of a class"},
    {"data.shards", "webdataset", kStrings, kRequired, "", kAny, "", "tar files, beside this file or absolute, in order"},
    {"data.tokenizer", "webdataset", kChoice, kOptional, "bytes", kAny, "bytes", "0-255 bytes, 256 image, 257 pad, 258 end"},
    {"data.window", "webdataset", kInteger, kOptional, "64", kSize, "", "documents that are shuffled and packed together"},
    {"data.min_patches", "webdataset", kInteger, kOptional, "4", kSize, "", "fewest patches an image is resized to"},
    {"data.max_patches", "webdataset", kInteger, kOptional, "256", kSize, "", "most patches an image is resized to"},
    {"data.path", "recorded", kString, kRequired, "", kAny, "", "a safetensors batch; sample i is row i mod the rows"},

    {"initialize", "", kMap, kOptional, "", kAny, "", "published weights to start from"},
    {"initialize.from", "", kString, kRequired, "", kAny, "", "a safetensors file, beside this file or absolute"},
    {"initialize.ignore", "", kStrings, kOptional, "", kAny, "", "tensors of the file that may stay unused"},

    {"checkpoint", "", kMap, kOptional, "", kAny, "", "saving and resuming"},
    {"checkpoint.every_steps", "", kInteger, kOptional, "", kCountFromOne, "", "steps between checkpoints; one is written at the end in any case"},

    {"log", "", kMap, kOptional, "", kAny, "", "what is written while training"},
    {"log.every_steps", "", kInteger, kOptional, "1", kCountFromOne, "", "steps between lines of metrics"},

    {"lints", "", kLintLevels, kOptional, "", kAny, "error|warn|off",
     "warnings by number: make one an error, or silence it; `plan explain` says which are lints"},

    {"launch", "", kMap, kOptional, "", kAny, "", "how ranks are started"},
    {"launch.slurm", "", kMap, kOptional, "", kAny, "", "what sbatch is told"},
    {"launch.slurm.partition", "", kString, kNotBuilt, "", kAny, "", "partition"},
    {"launch.slurm.account", "", kString, kNotBuilt, "", kAny, "", "account"},
    {"launch.slurm.time", "", kString, kNotBuilt, "", kAny, "", "wall time, in quotes"},
};

// "models.<name>.moe.ffn" -> "models.<name>.moe"
std::string_view ParentOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

}  // namespace

bool KeyRange::Holds(double value) const { return Broken(value).empty(); }

std::string KeyRange::Broken(double value) const {
  // Whole limits as integers: StrCat would write 16777216 as 1.67772e+07.
  const auto low_text = static_cast<int64_t>(low), high_text = static_cast<int64_t>(high);
  if (low_bound == Bound::kInclusive && !(value >= low)) return Cat("at least ", low_text);
  if (low_bound == Bound::kExclusive && !(value > low)) return Cat("above ", low_text);
  if (high_bound == Bound::kInclusive && !(value <= high)) return Cat("at most ", high_text);
  if (high_bound == Bound::kExclusive && !(value < high)) return Cat("below ", high_text);
  return "";
}

std::span<const KeySpec> RecipeKeys() { return kKeys; }

const KeySpec* FindKey(std::string_view map_path, std::string_view word, std::string_view kind) {
  for (const KeySpec& spec : kKeys) {
    if (WordOf(spec) == word && ParentOf(spec.path) == map_path && (spec.kind.empty() || spec.kind == kind)) return &spec;
  }
  return nullptr;
}

std::vector<const KeySpec*> KeysOf(std::string_view map_path) {
  std::vector<const KeySpec*> keys;
  for (const KeySpec& spec : kKeys) {
    if (ParentOf(spec.path) == map_path) keys.push_back(&spec);
  }
  return keys;
}

std::string_view WordOf(const KeySpec& spec) {
  const size_t dot = spec.path.rfind('.');
  return dot == std::string_view::npos ? spec.path : spec.path.substr(dot + 1);
}

std::vector<std::string> ChoicesOf(const KeySpec& spec) { return absl::StrSplit(std::string(spec.choices), '|'); }

std::string InnerPath(const KeySpec& spec) {
  if (spec.type == KeyType::kNamedMaps) return Cat(spec.path, ".<name>");
  if (spec.type == KeyType::kListOfMaps) return Cat(spec.path, "[]");
  return std::string(spec.path);
}

}  // namespace planwright
