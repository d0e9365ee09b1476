#include "planner/recipe/recipe_keys.h"

#include "absl/strings/str_split.h"
#include "planner/diagnostics/text.h"
#include "planner/plan/limits.h"
#include "planner/recipe/key_binding.h"
#include "planner/recipe/recipe.h"

namespace planwright {
namespace {

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
// Layers and microbatches are listed one by one in a plan: beyond these a plan would fill the memory before it is
// refused.
constexpr KeyRange kLayers{Bound::kInclusive, Bound::kInclusive, 1, static_cast<double>(kMostLayers)};
constexpr KeyRange kStageLayers{Bound::kInclusive, Bound::kInclusive, 0, 4096};
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
    {"name", "", To<&Recipe::name>, kRequired, "", kAny, "", "what plans and runs of this recipe are called"},
    {"extends", "", kTexts, kOptional, "", kAny, "",
     "recipes this one builds on, beside this file or absolute; maps merge, lists replace, later wins"},

    {"cluster", "", Section<&Recipe::cluster>, kOptional, "", kAny, "", "the machines"},
    {"cluster.nodes", "", To<&ClusterRecipe::nodes>, kOptional, "1", kSize, "", "how many nodes"},
    {"cluster.gpus_per_node", "", To<&ClusterRecipe::gpus_per_node>, kOptional, "8", kSize, "", "ranks on each node"},
    {"cluster.gpu", "", To<&ClusterRecipe::gpu>, kOptional, "none", kAny, "none|a100_sxm|h100_sxm|h200_sxm",
     "the device, which sets memory limits and rates; none: CPU ranks"},

    {"models", "", kNamedMaps, kOptional, "", kAny, "", "model definitions that modules name"},
    {"models.<name>.kind", "", To<&ModelRecipe::kind>, kRequired, "", kAny, "radio_vit|hybrid_lm",
     "which family the model is of"},

    {"models.<name>.layers", "radio_vit", To<&RadioVitModel::layers>, kRequired, "", kLayers, "", "transformer blocks"},
    {"models.<name>.hidden", "radio_vit", To<&RadioVitModel::hidden>, kRequired, "", kSize, "",
     "width of the residual stream"},
    {"models.<name>.heads", "radio_vit", To<&RadioVitModel::heads>, kRequired, "", kSize, "",
     "attention heads; they divide `hidden`"},
    {"models.<name>.ffn", "radio_vit", To<&RadioVitModel::ffn>, kRequired, "", kSize, "", "width inside the MLP"},
    {"models.<name>.patch", "radio_vit", To<&RadioVitModel::patch>, kRequired, "", kSize, "",
     "side of a patch in pixels"},
    {"models.<name>.class_tokens", "radio_vit", To<&RadioVitModel::class_tokens>, kRequired, "", kClassTokens, "",
     "tokens put before each image, dropped behind the encoder"},
    {"models.<name>.max_image", "radio_vit", To<&RadioVitModel::max_image>, kRequired, "", kImageSide, "",
     "largest side of an image in pixels; sets the table of positions"},
    {"models.<name>.pixel_shuffle", "radio_vit", To<&RadioVitModel::pixel_shuffle>, kOptional, "2", kShuffle, "",
     "side of the square of patches that becomes one image token"},
    {"models.<name>.positions", "radio_vit", To<&RadioVitModel::positions>, kOptional, "interpolate", kAny,
     "interpolate|crop",
     "how the table of positions meets an image: resized, or a random crop (the training-time augmentation)"},
    {"models.<name>.norm_eps", "radio_vit", To<&RadioVitModel::norm_eps>, kOptional, "1.0e-6", kPositive, "",
     "epsilon of the layer norms"},
    {"models.<name>.init_std", "radio_vit", To<&RadioVitModel::init_std>, kOptional, "0.02", kPositive, "",
     "standard deviation of initial linear weights"},
    {"models.<name>.projector", "radio_vit", kMap, kRequired, "", kAny, "",
     "from image tokens to the language model's width"},
    {"models.<name>.projector.kind", "", kText, kOptional, "mlp", kAny, "mlp", "norm, linear, squared ReLU, linear"},
    {"models.<name>.projector.hidden", "", To<&RadioVitModel::projector_hidden>, kRequired, "", kSize, "",
     "width inside the projector"},
    {"models.<name>.projector.norm_eps", "", To<&RadioVitModel::projector_norm_eps>, kOptional, "1.0e-5", kPositive, "",
     "epsilon of its norm"},

    {"models.<name>.pattern", "hybrid_lm", To<&HybridLmModel::pattern>, kRequired, "", kAny, "", kPatternHelp},
    {"models.<name>.hidden", "hybrid_lm", To<&HybridLmModel::hidden>, kRequired, "", kSize, "",
     "width of the residual stream"},
    {"models.<name>.vocabulary", "hybrid_lm", To<&HybridLmModel::vocabulary>, kRequired, "", kSize, "",
     "rows of the embedding and of the output"},
    {"models.<name>.init_std", "hybrid_lm", To<&HybridLmModel::init_std>, kOptional, "0.02", kPositive, "",
     "standard deviation of initial linear weights"},
    {"models.<name>.norm_eps", "hybrid_lm", To<&HybridLmModel::norm_eps>, kOptional, "1.0e-5", kPositive, "",
     "epsilon of the RMS norms"},
    {"models.<name>.attention", "hybrid_lm", Section<&HybridLmModel::attention>, kOptional, "", kAny, "",
     "sizes of * layers; required if the pattern has one"},
    {"models.<name>.attention.heads", "", To<&HybridLmModel::Attention::heads>, kRequired, "", kSize, "",
     "query heads"},
    {"models.<name>.attention.head_dim", "", To<&HybridLmModel::Attention::head_dim>, kRequired, "", kSize, "",
     "size of a head"},
    {"models.<name>.attention.kv_groups", "", To<&HybridLmModel::Attention::kv_groups>, kRequired, "", kSize, "",
     "key and value heads; they divide `heads`"},
    {"models.<name>.mamba", "hybrid_lm", Section<&HybridLmModel::mamba>, kOptional, "", kAny, "",
     "sizes of M layers; required if the pattern has one"},
    {"models.<name>.mamba.heads", "", To<&HybridLmModel::Mamba::heads>, kRequired, "", kSize, "", "heads"},
    {"models.<name>.mamba.head_dim", "", To<&HybridLmModel::Mamba::head_dim>, kRequired, "", kSize, "",
     "size of a head"},
    {"models.<name>.mamba.groups", "", To<&HybridLmModel::Mamba::groups>, kRequired, "", kSize, "",
     "groups of heads that share B and C; they divide `heads`"},
    {"models.<name>.mamba.state", "", To<&HybridLmModel::Mamba::state>, kRequired, "", kSize, "", "size of the state"},
    {"models.<name>.mamba.conv", "", To<&HybridLmModel::Mamba::conv>, kOptional, "4", kSize, "",
     "width of the causal convolution"},
    {"models.<name>.mamba.chunk", "", To<&HybridLmModel::Mamba::chunk>, kOptional, "128", kSize, "",
     "tokens of one chunk of the scan"},
    {"models.<name>.moe", "hybrid_lm", Section<&HybridLmModel::moe>, kOptional, "", kAny, "",
     "sizes of E layers; required if the pattern has one"},
    {"models.<name>.moe.experts", "", To<&HybridLmModel::Moe::experts>, kRequired, "", kSize, "", "routed experts"},
    {"models.<name>.moe.top_k", "", To<&HybridLmModel::Moe::top_k>, kRequired, "", kSize, "", "experts of a token"},
    {"models.<name>.moe.ffn", "", To<&HybridLmModel::Moe::ffn>, kRequired, "", kSize, "",
     "width inside a routed expert"},
    {"models.<name>.moe.shared_ffn", "", To<&HybridLmModel::Moe::shared_ffn>, kRequired, "", kSize, "",
     "width inside the shared expert"},
    {"models.<name>.moe.scale", "", To<&HybridLmModel::Moe::scale>, kOptional, "1.0", kPositive, "",
     "factor on the routed experts' weights"},
    {"models.<name>.moe.aux_loss", "", To<&HybridLmModel::Moe::aux_loss>, kOptional, "0.0", kFromZero, "",
     "coefficient of the load-balancing loss"},
    {"models.<name>.moe.bias_rate", "", ToConstant<&HybridLmModel::constants, double>, kOptional, "0.0", kFromZero, "",
     "step of the experts' selection bias"},
    {"models.<name>.moe.imbalance", "", To<&HybridLmModel::Moe::imbalance>, kOptional, "2.0", kFromOne, "",
     "rows that memory is planned for on the busiest rank, over the mean"},

    {"modules", "", kNamedMaps, kRequired, "", kAny, "", "the parts that are trained together, each on its own ranks"},
    {"modules.<name>.model", "", To<&ModuleRecipe::model_reference>, kRequired, "", kAny, "", "a name from `models`"},
    {"modules.<name>.placement", "", kMap, kRequired, "", kAny, "", "the ranks of the module"},
    {"modules.<name>.placement.first_rank", "", To<&ModuleRecipe::first_rank>, kRequired, "", kCount, "",
     "its first rank"},
    {"modules.<name>.placement.ranks", "", To<&ModuleRecipe::ranks>, kRequired, "", kSize, "",
     "how many ranks in a row"},
    {"modules.<name>.parallel", "", kMap, kOptional, "", kAny, "", "sizes of the module's grid"},
    {"modules.<name>.parallel.tp", "", To<&ModuleRecipe::tp>, kOptional, "1", kSize, "", "tensor parallel"},
    {"modules.<name>.parallel.cp", "", To<&ModuleRecipe::cp>, kOptional, "1", kSize, "", "context parallel"},
    {"modules.<name>.parallel.pp", "", To<&ModuleRecipe::pp>, kOptional, "1", kSize, "", "pipeline parallel"},
    {"modules.<name>.parallel.dp", "", To<&ModuleRecipe::dp>, kOptional, "", kSize, "",
     "data parallel; derived, and checked if given"},
    {"modules.<name>.parallel.ep", "", To<&ModuleRecipe::ep>, kOptional, "1", kSize, "", "expert parallel"},
    {"modules.<name>.parallel.expert_tp", "", To<&ModuleRecipe::expert_tp>, kOptional, "1", kSize, "",
     "tensor parallel inside experts"},
    {"modules.<name>.parallel.stage_layers", "", To<&ModuleRecipe::stage_layers>, kOptional, "", kStageLayers, "",
     "layers of each pipeline stage, in order; instead of an even split"},
    {"modules.<name>.parallel.first_stage_layers", "", To<&ModuleRecipe::first_stage_layers>, kOptional, "",
     kStageLayers, "", "layers of the first pipeline stage; the others share the rest evenly"},
    {"modules.<name>.parallel.last_stage_layers", "", To<&ModuleRecipe::last_stage_layers>, kOptional, "", kStageLayers,
     "", "layers of the last pipeline stage; the others share the rest evenly"},
    {"modules.<name>.recompute", "", To<&ModuleRecipe::recompute>, kOptional, "none", kAny, kRecompute,
     "layers whose forward is run again in the backward pass to save memory: none, full, or a list of layer kinds "
     "(block: an encoder's)"},
    {"modules.<name>.train", "", kMap, kOptional, "", kAny, "", "which parts learn"},
    {"modules.<name>.train.backbone", "", To<&ModuleRecipe::train_backbone>, kOptional, "trained", kAny,
     "trained|frozen", "all but the projection"},
    {"modules.<name>.train.projection", "", To<&ModuleRecipe::train_projection>, kOptional, "trained", kAny,
     "trained|frozen", "an encoder's projector"},

    {"bridges", "", kListOfMaps, kOptional, "", kAny, "", "which module's output another module reads"},
    {"bridges[].from", "", To<&BridgeRecipe::from>, kRequired, "", kAny, "", "the module that sends"},
    {"bridges[].to", "", To<&BridgeRecipe::to>, kRequired, "", kAny, "", "the module that receives"},

    {"bridges[].token", "", To<&BridgeRecipe::token>, kOptional, "", kCountFromZero, "",
     "the token id whose places its rows take; data.image_token if not given; needed with several encoders"},

    {"batch", "", Section<&Recipe::batch>, kRequired, "", kAny, "", "sizes of a step"},
    {"batch.global_samples", "", To<&BatchRecipe::global_samples>, kRequired, "", kBatch, "",
     "samples of one optimizer step"},
    {"batch.micro_samples", "", To<&BatchRecipe::micro_samples>, kOptional, "1", kSize, "",
     "samples a language lane takes at once"},
    {"batch.sequence_length",
     "",
     To<&BatchRecipe::sequence_length>,
     kRequired,
     "",
     {Bound::kInclusive, Bound::kInclusive, 2, 16777216},
     "",
     "tokens of a sample"},

    {"budget", "", Section<&Recipe::budget>, kRequired, "", kAny, "",
     "how long to train, and at what rates; all in samples"},
    {"budget.train_samples", "", To<&BudgetRecipe::train_samples>, kRequired, "", kSamples, "",
     "samples to train on; the last step is a full batch"},
    {"budget.learning_rate", "", Section<&BudgetRecipe::learning_rate>, kRequired, "", kAny, "",
     "the learning rate over samples"},
    {"budget.learning_rate.peak", "", To<&LearningRateRecipe::peak>, kRequired, "", kFromZero, "", "the highest rate"},
    {"budget.learning_rate.min", "", To<&LearningRateRecipe::min>, kOptional, "0.0", kFromZero, "",
     "the rate after the decay"},
    {"budget.learning_rate.init", "", To<&LearningRateRecipe::init>, kOptional, "0.0", kFromZero, "",
     "the rate the warmup starts from"},
    {"budget.learning_rate.warmup_samples", "", To<&LearningRateRecipe::warmup_samples>, kOptional, "", kSamplesOrNone,
     "", "length of the warmup"},
    {"budget.learning_rate.warmup_fraction", "", To<&LearningRateRecipe::warmup_fraction>, kOptional, "", kBelowOne, "",
     "the same as a part of decay_samples"},
    {"budget.learning_rate.decay_samples", "", To<&LearningRateRecipe::decay_samples>, kOptional, "", kSamples, "",
     "the sample at which the decay ends (an end, not a length); train_samples if not given"},
    {"budget.learning_rate.style", "", To<&LearningRateRecipe::style>, kOptional, "constant", kAny,
     "constant|linear|cosine|inverse_sqrt|wsd", "shape between warmup and end"},
    {"budget.learning_rate.wsd", "", kMap, kOptional, "", kAny, "", "the last segment of style wsd"},
    {"budget.learning_rate.wsd.decay_samples", "", To<&LearningRateRecipe::wsd_decay_samples>, kOptional, "", kSamples,
     "", "its length"},
    {"budget.learning_rate.wsd.style", "", To<&LearningRateRecipe::wsd_style>, kOptional, "", kAny,
     "linear|cosine|exponential|minus_sqrt", "its shape"},
    {"budget.weight_decay", "", Section<&BudgetRecipe::weight_decay>, kOptional, "", kAny, "",
     "weight decay over samples; ramps end at train_samples"},
    {"budget.weight_decay.start", "", To<&WeightDecayRecipe::start>, kOptional, "0.0", kFromZero, "",
     "at the first sample"},
    {"budget.weight_decay.end", "", To<&WeightDecayRecipe::end>, kOptional, "0.0", kFromZero, "", "at the last sample"},
    {"budget.weight_decay.style", "", To<&WeightDecayRecipe::style>, kOptional, "constant", kAny,
     "constant|linear|cosine", "shape between the two"},

    {"optimizer", "", Section<&Recipe::optimizer>, kOptional, "", kAny, "", "the optimizer"},
    {"optimizer.name", "", kText, kOptional, "adamw", kAny, "adamw", "which one"},
    {"optimizer.betas", "", ToPair<&OptimizerPlan::beta1, &OptimizerPlan::beta2>, kOptional, "[0.9, 0.95]", kBelowOne,
     "", "decay of the two moments"},
    {"optimizer.eps", "", To<&OptimizerPlan::eps>, kOptional, "1.0e-8", kPositive, "", "added to the denominator"},
    {"optimizer.clip_grad_norm", "", To<&OptimizerPlan::clip_grad_norm>, kOptional, "1.0", kPositive, "",
     "largest norm of the gradient over all modules"},

    {"gradients", "", Section<&Recipe::gradients>, kOptional, "", kAny, "", "how gradients are summed"},
    {"gradients.reduce_dtype", "", To<&GradientsRecipe::reduce_dtype>, kOptional, "fp32", kAny, "fp32|bf16",
     "type they travel in"},
    {"gradients.overlap_reduce", "", To<&GradientsRecipe::overlap_reduce>, kOptional, "false", kAny, "",
     "reduce behind the backward pass"},
    {"gradients.overlap_gather", "", To<&GradientsRecipe::overlap_gather>, kOptional, "false", kAny, "",
     "gather parameters behind the forward pass"},
    {"gradients.buckets", "", To<&GradientsRecipe::buckets>, kOptional, "1", kSize, "",
     "parts a module's gradients are summed in"},

    {"precision", "", kMap, kOptional, "", kAny, "", "types of numbers"},
    {"precision.params", "", To<&Recipe::precision>, kOptional, "bf16", kAny, "bf16|fp32|fp64",
     "of parameters and activations; fp64 means everything"},

    {"data", "", Section<&Recipe::data>, kRequired, "", kAny, "", "where samples come from"},
    {"data.kind", "", To<&DataRecipe::kind>, kOptional, "mock", kAny, "mock|webdataset|recorded",
     "made up and learnable; tar shards; a stored batch"},
    {"data.seed", "", To<&DataRecipe::seed>, kOptional, "1234", kCountFromZero, "",
     "of every draw: weights, samples, positions"},
    {"data.image_token", "", To<&DataRecipe::image_token>, kOptional, "", kCountFromZero, "",
     "the token id whose places take image rows; required, except with bytes and for made-up text without an encoder"},
    {"data.packed_documents", "", To<&DataRecipe::packed_documents>, kOptional, "false", kAny, "",
     "attention and Mamba state end where a document ends; needs micro_samples 1"},
    {"data.image_grids", "mock", To<&DataRecipe::image_grids>, kOptional, "", kSize, "",
     "[rows, columns] of patches that images are drawn from"},
    {"data.max_images",
     "mock",
     To<&DataRecipe::max_images>,
     kOptional,
     "3",
     {Bound::kInclusive, Bound::kInclusive, 0, 3},
     "",
     "most images of a sample"},
    {"data.classes", "mock", To<&DataRecipe::classes>, kOptional, "8", kSize, "",
     "kinds of image, each with its own pattern and text"},
    {"data.text_tokens", "mock", To<&DataRecipe::text_tokens>, kOptional, "8", kSize, "",
     "length of the text of a class"},
    {"data.shards", "webdataset", To<&DataRecipe::shards>, kRequired, "", kAny, "",
     "tar files, beside this file or absolute, in order"},
    {"data.tokenizer", "webdataset", To<&DataRecipe::tokenizer>, kOptional, "bytes", kAny, "bytes",
     "0-255 bytes, 256 image, 257 pad, 258 end"},
    {"data.window", "webdataset", To<&DataRecipe::window>, kOptional, "64", kSize, "",
     "documents that are shuffled and packed together"},
    {"data.min_patches", "webdataset", To<&DataRecipe::min_patches>, kOptional, "4", kSize, "",
     "fewest patches an image is resized to"},
    {"data.max_patches", "webdataset", To<&DataRecipe::max_patches>, kOptional, "256", kSize, "",
     "most patches an image is resized to"},
    {"data.path", "recorded", To<&DataRecipe::path>, kRequired, "", kAny, "",
     "a safetensors batch; sample i is row i mod the rows"},

    {"initialize", "", Section<&Recipe::initialize>, kOptional, "", kAny, "", "published weights to start from"},
    {"initialize.from", "", To<&InitializeRecipe::from>, kRequired, "", kAny, "",
     "a safetensors file, beside this file or absolute"},
    {"initialize.ignore", "", To<&InitializeRecipe::ignore>, kOptional, "", kAny, "",
     "tensors of the file that may stay unused"},

    {"checkpoint", "", Section<&Recipe::checkpoint>, kOptional, "", kAny, "", "saving and resuming"},
    {"checkpoint.every_steps", "", To<&CheckpointRecipe::every_steps>, kOptional, "", kCountFromOne, "",
     "steps between checkpoints; one is written at the end in any case"},

    {"log", "", Section<&Recipe::log>, kOptional, "", kAny, "", "what is written while training"},
    {"log.every_steps", "", To<&LogRecipe::every_steps>, kOptional, "1", kCountFromOne, "",
     "steps between lines of metrics"},

    {"lints", "", kLintLevels, kOptional, "", kAny, "error|warn|off",
     "warnings by number: make one an error, or silence it; `plan explain` says which are lints"},

    {"launch", "", kMap, kOptional, "", kAny, "", "how ranks are started"},
    {"launch.slurm", "", kMap, kOptional, "", kAny, "", "what sbatch is told"},
    {"launch.slurm.partition", "", kText, kNotBuilt, "", kAny, "", "partition"},
    {"launch.slurm.account", "", kText, kNotBuilt, "", kAny, "", "account"},
    {"launch.slurm.time", "", kText, kNotBuilt, "", kAny, "", "wall time, in quotes"},
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
    if (WordOf(spec) == word && ParentOf(spec.path) == map_path && (spec.kind.empty() || spec.kind == kind))
      return &spec;
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

std::string_view ConstantOf(const KeySpec& spec) {
  constexpr std::string_view kName = "<name>.";
  const size_t at = spec.path.find(kName);
  return at == std::string_view::npos ? spec.path : spec.path.substr(at + kName.size());
}

std::vector<std::string> ChoicesOf(const KeySpec& spec) { return absl::StrSplit(std::string(spec.choices), '|'); }

std::string InnerPath(const KeySpec& spec) {
  if (spec.type == KeyType::kNamedMaps) return Cat(spec.path, ".<name>");
  if (spec.type == KeyType::kListOfMaps) return Cat(spec.path, "[]");
  return std::string(spec.path);
}

}  // namespace planwright
