#include "planner/recipe/recipe_keys.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/diagnostics/text.h"
#include "planner/plan/limits.h"
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
// A larger size is a typing mistake, and the product of a few such sizes would exceed 64 bits.
constexpr KeyRange kSize{Bound::kInclusive, Bound::kInclusive, 1, 16777216};
// A plan lists layers and microbatches one by one. With more of them the planner would run out of memory before it
// could refuse the plan (docs/limits.md).
constexpr KeyRange kLayers{Bound::kInclusive, Bound::kInclusive, 1, static_cast<double>(kMostLayers)};
constexpr KeyRange kStageLayers{Bound::kInclusive, Bound::kInclusive, 0, 4096};
constexpr KeyRange kBatch{Bound::kInclusive, Bound::kInclusive, 1, 65536};
// Samples of a whole training. Up to here a double counts exactly, and sums stay far below 64 bits.
constexpr KeyRange kSamples{Bound::kInclusive, Bound::kInclusive, 1, 1e15};
constexpr KeyRange kSamplesOrNone{Bound::kInclusive, Bound::kInclusive, 0, 1e15};
constexpr KeyRange kImageSide{Bound::kInclusive, Bound::kInclusive, 1, static_cast<double>(kMostGridSide)};
constexpr KeyRange kClassTokens{Bound::kInclusive, Bound::kInclusive, 1, 4096};
constexpr KeyRange kShuffle{Bound::kInclusive, Bound::kInclusive, 1, static_cast<double>(kMostPixelShuffle)};
constexpr KeyRange kCount{Bound::kInclusive, Bound::kInclusive, 0, 16777216};

// The words of all layer kinds, and the meaning of their letters in a pattern.
#define LAYER(id, letter, word, title) "|" word
#define ENCODER_LAYER(letter, word, title) "|" word
constexpr char kRecompute[] = "none|full"
#include "planner/plan/layer_kinds.def"
    ;
#define LAYER(id, letter, word, title) "; " letter " " title
constexpr char kPatternHelp[] = "one character for each layer, in quotes"
#include "planner/plan/layer_kinds.def"
    ;

// path, kind, field, need, default, range, choices, help. Sections are in the order of the reference page. The help of
// a key is a noun phrase: it follows "add `key`: " in messages.
constexpr KeySpec kKeys[] = {
    {"name", "", To<&Recipe::name>, kRequired, "", kAny, "", "name of the plans and runs of this recipe"},
    {"extends", "", kTexts, kOptional, "", kAny, "",
     "recipe files to build on, absolute or relative to this file; maps merge, lists replace, later ones win"},

    {"cluster", "", Section<&Recipe::cluster>, kOptional, "", kAny, "", "the machines"},
    {"cluster.nodes", "", To<&ClusterRecipe::nodes>, kOptional, "1", kSize, "", "number of nodes"},
    {"cluster.gpus_per_node", "", To<&ClusterRecipe::gpus_per_node>, kOptional, "8", kSize, "",
     "number of GPUs of a node; without GPUs, of ranks of a node"},
    {"cluster.gpu", "", To<&ClusterRecipe::gpu>, kOptional, "none", kAny, "none|a100_sxm|h100_sxm|h200_sxm|other",
     "device type, which decides memory limit and speed; none: ranks on CPUs; other: GPUs of which `device` has all "
     "figures"},
    {"cluster.host_memory", "", To<&ClusterRecipe::host_memory>, kOptional, "", kPositive, "",
     "GB of a node's memory that ranks may use; copies of checkpoints are planned to fit"},
    {"cluster.device", "", Section<&ClusterRecipe::device>, kOptional, "", kAny, "",
     "figures of the device's data sheet, in place of those of `gpu`"},
    {"cluster.device.memory", "", To<&DeviceRecipe::memory>, kOptional, "", kPositive, "",
     "memory in GB (10^9 bytes), as CUDA reports it"},
    {"cluster.device.peak", "", To<&DeviceRecipe::peak>, kOptional, "", kPositive, "",
     "TFLOP/s of dense matrix products in the recipe's precision"},
    {"cluster.device.bandwidth", "", To<&DeviceRecipe::bandwidth>, kOptional, "", kPositive, "",
     "GB/s of the device's memory"},
    {"cluster.device.link", "", To<&DeviceRecipe::link>, kOptional, "", kPositive, "",
     "GB/s to the other devices of its node, in one direction"},
    {"cluster.device.network", "", To<&DeviceRecipe::network>, kOptional, "", kPositive, "",
     "GB/s of the device's share of the network between nodes, in one direction"},
    {"cluster.profile", "", To<&ClusterRecipe::profile>, kOptional, "", kAny, "",
     "file of times that `plan measure` wrote on such devices, absolute or relative to this file"},

    {"models", "", kNamedMaps, kOptional, "", kAny, "", "model definitions by name"},
    {"models.<name>.kind", "", To<&ModelRecipe::kind>, kRequired, "", kAny, "radio_vit|hybrid_lm",
     "family of the model"},

    {"models.<name>.layers", "radio_vit", To<&RadioVitModel::layers>, kRequired, "", kLayers, "", "transformer blocks"},
    {"models.<name>.hidden", "radio_vit", To<&RadioVitModel::hidden>, kRequired, "", kSize, "",
     "width of the residual stream"},
    {"models.<name>.heads", "radio_vit", To<&RadioVitModel::heads>, kRequired, "", kSize, "",
     "number of attention heads; `hidden` is a multiple of it"},
    {"models.<name>.ffn", "radio_vit", To<&RadioVitModel::ffn>, kRequired, "", kSize, "", "width inside the MLP"},
    {"models.<name>.patch", "radio_vit", To<&RadioVitModel::patch>, kRequired, "", kSize, "",
     "side of a patch in pixels"},
    {"models.<name>.class_tokens", "radio_vit", To<&RadioVitModel::class_tokens>, kRequired, "", kClassTokens, "",
     "tokens added before the patches of each image and dropped after the encoder"},
    {"models.<name>.max_image", "radio_vit", To<&RadioVitModel::max_image>, kRequired, "", kImageSide, "",
     "largest side of an image in pixels; decides the size of the position table"},
    {"models.<name>.pixel_shuffle", "radio_vit", To<&RadioVitModel::pixel_shuffle>, kOptional, "2", kShuffle, "",
     "side of the square of patches that becomes one image token"},
    {"models.<name>.positions", "radio_vit", To<&RadioVitModel::positions>, kOptional, "interpolate", kAny,
     "interpolate|crop",
     "how the position table is fitted to an image: resized (interpolate), or a random crop as augmentation"},
    {"models.<name>.activation", "radio_vit", To<&RadioVitModel::activation>, kOptional, "gelu_tanh", kAny,
     "gelu_tanh|gelu",
     "function inside the MLP: the tanh form of GELU (gelu_tanh), or the exact one, by the error function"},
    {"models.<name>.final_norm", "radio_vit", To<&RadioVitModel::final_norm>, kOptional, "layernorm", kAny,
     "layernorm|none", "norm between the last block and the pixel shuffle"},
    {"models.<name>.norm_eps", "radio_vit", To<&RadioVitModel::norm_eps>, kOptional, "1.0e-6", kPositive, "",
     "epsilon of the layer norms"},
    {"models.<name>.init_std", "radio_vit", To<&RadioVitModel::init_std>, kOptional, "0.02", kPositive, "",
     "standard deviation of initial linear weights"},
    {"models.<name>.projector", "radio_vit", kMap, kRequired, "", kAny, "",
     "layers from image tokens to the width of the language model: norm, linear, squared ReLU, linear"},
    {"models.<name>.projector.hidden", "", To<&RadioVitModel::projector_hidden>, kRequired, "", kSize, "",
     "width inside the projector"},
    {"models.<name>.projector.norm_eps", "", To<&RadioVitModel::projector_norm_eps>, kOptional, "1.0e-5", kPositive, "",
     "epsilon of the projector's norm"},

    {"models.<name>.pattern", "hybrid_lm", To<&HybridLmModel::pattern>, kRequired, "", kAny, "", kPatternHelp},
    {"models.<name>.hidden", "hybrid_lm", To<&HybridLmModel::hidden>, kRequired, "", kSize, "",
     "width of the residual stream"},
    {"models.<name>.vocabulary", "hybrid_lm", To<&HybridLmModel::vocabulary>, kRequired, "", kSize, "",
     "number of token ids: rows of the embedding and of the output head"},
    {"models.<name>.init_std", "hybrid_lm", To<&HybridLmModel::init_std>, kOptional, "0.02", kPositive, "",
     "standard deviation of initial linear weights"},
    {"models.<name>.norm_eps", "hybrid_lm", To<&HybridLmModel::norm_eps>, kOptional, "1.0e-5", kPositive, "",
     "epsilon of the RMS norms"},
    {"models.<name>.attention", "hybrid_lm", Section<&HybridLmModel::attention>, kOptional, "", kAny, "",
     "sizes of * layers; required if the pattern has any"},
    {"models.<name>.attention.heads", "", To<&HybridLmModel::Attention::heads>, kRequired, "", kSize, "",
     "number of query heads"},
    {"models.<name>.attention.head_dim", "", To<&HybridLmModel::Attention::head_dim>, kRequired, "", kSize, "",
     "size of a head"},
    {"models.<name>.attention.kv_groups", "", To<&HybridLmModel::Attention::kv_groups>, kRequired, "", kSize, "",
     "number of key and value heads; `heads` is a multiple of it"},
    {"models.<name>.mamba", "hybrid_lm", Section<&HybridLmModel::mamba>, kOptional, "", kAny, "",
     "sizes of M layers; required if the pattern has any"},
    {"models.<name>.mamba.heads", "", To<&HybridLmModel::Mamba::heads>, kRequired, "", kSize, "", "number of heads"},
    {"models.<name>.mamba.head_dim", "", To<&HybridLmModel::Mamba::head_dim>, kRequired, "", kSize, "",
     "size of a head"},
    {"models.<name>.mamba.groups", "", To<&HybridLmModel::Mamba::groups>, kRequired, "", kSize, "",
     "number of groups of heads that share B and C; `heads` is a multiple of it"},
    {"models.<name>.mamba.state", "", To<&HybridLmModel::Mamba::state>, kRequired, "", kSize, "",
     "state size of each head channel"},
    {"models.<name>.mamba.conv", "", To<&HybridLmModel::Mamba::conv>, kOptional, "4", kSize, "",
     "width of the causal convolution"},
    {"models.<name>.mamba.chunk", "", To<&HybridLmModel::Mamba::chunk>, kOptional, "128", kSize, "",
     "tokens of one chunk of the scan"},
    {"models.<name>.moe", "hybrid_lm", Section<&HybridLmModel::moe>, kOptional, "", kAny, "",
     "sizes of E layers; required if the pattern has any"},
    {"models.<name>.moe.experts", "", To<&HybridLmModel::Moe::experts>, kRequired, "", kSize, "",
     "number of routed experts"},
    {"models.<name>.moe.top_k", "", To<&HybridLmModel::Moe::top_k>, kRequired, "", kSize, "",
     "number of experts that each token uses"},
    {"models.<name>.moe.ffn", "", To<&HybridLmModel::Moe::ffn>, kRequired, "", kSize, "",
     "width inside a routed expert"},
    {"models.<name>.moe.shared_ffn", "", To<&HybridLmModel::Moe::shared_ffn>, kRequired, "", kSize, "",
     "width inside the shared expert"},
    {"models.<name>.moe.scale", "", To<&HybridLmModel::Moe::scale>, kOptional, "1.0", kPositive, "",
     "factor on the weights of routed experts"},
    {"models.<name>.moe.aux_loss", "", To<&HybridLmModel::Moe::aux_loss>, kOptional, "0.0", kFromZero, "",
     "coefficient of the load-balancing loss"},
    {"models.<name>.moe.bias_rate", "", ToConstant<&HybridLmModel::constants, double>, kOptional, "0.0", kFromZero, "",
     "step size of the expert bias, which balances the load"},
    {"models.<name>.moe.imbalance", "", To<&HybridLmModel::Moe::imbalance>, kOptional, "", kFromOne, "",
     "expert rows of the busiest rank that memory is planned for, as a multiple of the mean; a step with more "
     "stops the run; without it, memory is planned for as many as there can be"},

    {"models.<name>.mlp", "hybrid_lm", Section<&HybridLmModel::mlp>, kOptional, "", kAny, "",
     "sizes of - layers; required if the pattern has any"},
    {"models.<name>.mlp.ffn", "", To<&HybridLmModel::Mlp::ffn>, kRequired, "", kSize, "", "width inside the MLP"},

    {"modules", "", kNamedMaps, kRequired, "", kAny, "", "models to train together, each with its ranks"},
    {"modules.<name>.model", "", To<&ModuleRecipe::model_reference>, kRequired, "", kAny, "",
     "name of a model in `models`"},
    {"modules.<name>.placement", "", kMap, kRequired, "", kAny, "", "ranks of the module"},
    {"modules.<name>.placement.first_rank", "", To<&ModuleRecipe::first_rank>, kRequired, "", kCount, "",
     "first rank of the module"},
    {"modules.<name>.placement.ranks", "", To<&ModuleRecipe::ranks>, kRequired, "", kSize, "",
     "number of consecutive ranks"},
    {"modules.<name>.parallel", "", kMap, kOptional, "", kAny, "", "sizes of the module's grid"},
    {"modules.<name>.parallel.tp", "", To<&ModuleRecipe::tp>, kOptional, "1", kSize, "", "tensor-parallel size"},
    {"modules.<name>.parallel.cp", "", To<&ModuleRecipe::cp>, kOptional, "1", kSize, "", "context-parallel size"},
    {"modules.<name>.parallel.pp", "", To<&ModuleRecipe::pp>, kOptional, "1", kSize, "",
     "pipeline-parallel size: number of stages"},
    {"modules.<name>.parallel.dp", "", To<&ModuleRecipe::dp>, kOptional, "", kSize, "",
     "data-parallel size; follows from the other sizes, and is only checked if given"},
    {"modules.<name>.parallel.ep", "", To<&ModuleRecipe::ep>, kOptional, "1", kSize, "", "expert-parallel size"},
    {"modules.<name>.parallel.expert_tp", "", To<&ModuleRecipe::expert_tp>, kOptional, "1", kSize, "",
     "tensor-parallel size inside experts"},
    {"modules.<name>.parallel.dispatch", "", To<&ModuleRecipe::dispatch>, kOptional, "auto", kAny,
     "auto|all_to_all|all_gather",
     "how tokens reach the experts of other ep ranks: each row to its expert's rank, or all tokens to all ranks; auto: "
     "the faster one"},
    {"modules.<name>.parallel.overlap_dispatch", "", To<&ModuleRecipe::overlap_dispatch>, kOptional, "false", kAny, "",
     "run the shared expert while tokens travel to the experts and back"},
    {"modules.<name>.parallel.stage_layers", "", To<&ModuleRecipe::stage_layers>, kOptional, "", kStageLayers, "",
     "number of layers of each pipeline stage, in order; without it the split is even"},
    {"modules.<name>.parallel.first_stage_layers", "", To<&ModuleRecipe::first_stage_layers>, kOptional, "",
     kStageLayers, "", "number of layers of the first pipeline stage; the other stages share the rest evenly"},
    {"modules.<name>.parallel.last_stage_layers", "", To<&ModuleRecipe::last_stage_layers>, kOptional, "", kStageLayers,
     "", "number of layers of the last pipeline stage; the other stages share the rest evenly"},
    {"modules.<name>.recompute", "", To<&ModuleRecipe::recompute>, kOptional, "none", kAny, kRecompute,
     "layers that repeat their forward in the backward to save memory: none, full (all layers), or layer kinds "
     "(block is the kind of an encoder's layers)"},
    {"modules.<name>.train", "", kMap, kOptional, "", kAny, "", "which parts are trained"},
    {"modules.<name>.train.backbone", "", To<&ModuleRecipe::train_backbone>, kOptional, "trained", kAny,
     "trained|frozen", "all parts except the projector"},
    {"modules.<name>.train.projection", "", To<&ModuleRecipe::train_projection>, kOptional, "trained", kAny,
     "trained|frozen", "the projector of an encoder"},

    {"bridges", "", kListOfMaps, kOptional, "", kAny, "", "connections from encoders to the language module"},
    {"bridges[].from", "", To<&BridgeRecipe::from>, kRequired, "", kAny, "", "encoder that sends its rows"},
    {"bridges[].to", "", To<&BridgeRecipe::to>, kRequired, "", kAny, "", "language module that receives them"},

    {"bridges[].token", "", To<&BridgeRecipe::token>, kOptional, "", kCountFromZero, "",
     "token id whose places the rows take; without it data.image_token; required with several encoders"},
    {"bridges[].max_mean_square", "", To<&BridgeRecipe::max_mean_square>, kOptional, "", kPositive, "",
     "the run stops after a step in which the mean square of the rows is beyond this; without it there is no limit"},

    {"batch", "", Section<&Recipe::batch>, kRequired, "", kAny, "", "sizes of a step"},
    {"batch.global_samples", "", To<&BatchRecipe::global_samples>, kRequired, "", kBatch, "",
     "samples of one optimizer step"},
    {"batch.micro_samples", "", To<&BatchRecipe::micro_samples>, kOptional, "1", kSize, "",
     "samples of a microbatch on each language lane"},
    {"batch.sequence_length",
     "",
     To<&BatchRecipe::sequence_length>,
     kRequired,
     "",
     {Bound::kInclusive, Bound::kInclusive, 2, 16777216},
     "",
     "number of tokens of a sample"},

    {"budget", "", Section<&Recipe::budget>, kRequired, "", kAny, "",
     "length of the training, learning rate and weight decay, all counted in samples"},
    {"budget.train_samples", "", To<&BudgetRecipe::train_samples>, kRequired, "", kSamples, "",
     "samples to train on; the last step is a full batch"},
    {"budget.learning_rate", "", Section<&BudgetRecipe::learning_rate>, kRequired, "", kAny, "",
     "learning rate over samples"},
    {"budget.learning_rate.peak", "", To<&LearningRateRecipe::peak>, kRequired, "", kFromZero, "",
     "highest learning rate"},
    {"budget.learning_rate.min", "", To<&LearningRateRecipe::min>, kOptional, "0.0", kFromZero, "",
     "learning rate after the decay"},
    {"budget.learning_rate.init", "", To<&LearningRateRecipe::init>, kOptional, "0.0", kFromZero, "",
     "learning rate at the start of the warmup"},
    {"budget.learning_rate.warmup_samples", "", To<&LearningRateRecipe::warmup_samples>, kOptional, "", kSamplesOrNone,
     "", "length of the warmup in samples"},
    {"budget.learning_rate.warmup_fraction", "", To<&LearningRateRecipe::warmup_fraction>, kOptional, "", kBelowOne, "",
     "length of the warmup as a fraction of decay_samples"},
    {"budget.learning_rate.decay_samples", "", To<&LearningRateRecipe::decay_samples>, kOptional, "", kSamples, "",
     "sample count at which the decay ends, from the start of training (not a length); without it train_samples"},
    {"budget.learning_rate.style", "", To<&LearningRateRecipe::style>, kOptional, "constant", kAny,
     "constant|linear|cosine|inverse_sqrt|wsd", "shape of the learning rate after the warmup"},
    {"budget.learning_rate.wsd", "", kMap, kOptional, "", kAny, "", "the decay at the end of style wsd"},
    {"budget.learning_rate.wsd.decay_samples", "", To<&LearningRateRecipe::wsd_decay_samples>, kOptional, "", kSamples,
     "", "length of this decay in samples"},
    {"budget.learning_rate.wsd.style", "", To<&LearningRateRecipe::wsd_style>, kOptional, "", kAny,
     "linear|cosine|exponential|minus_sqrt", "shape of this decay"},
    {"budget.weight_decay", "", Section<&BudgetRecipe::weight_decay>, kOptional, "", kAny, "",
     "weight decay over samples; it reaches `end` at train_samples"},
    {"budget.weight_decay.start", "", To<&WeightDecayRecipe::start>, kOptional, "0.0", kFromZero, "",
     "weight decay at the first sample"},
    {"budget.weight_decay.end", "", To<&WeightDecayRecipe::end>, kOptional, "0.0", kFromZero, "",
     "weight decay at the last sample"},
    {"budget.weight_decay.style", "", To<&WeightDecayRecipe::style>, kOptional, "constant", kAny,
     "constant|linear|cosine", "shape between start and end"},

    {"optimizer", "", Section<&Recipe::optimizer>, kOptional, "", kAny, "", "the optimizer"},
    {"optimizer.betas", "", ToPair<&OptimizerPlan::beta1, &OptimizerPlan::beta2>, kOptional, "[0.9, 0.95]", kBelowOne,
     "", "decay rates of the two moments"},
    {"optimizer.eps", "", To<&OptimizerPlan::eps>, kOptional, "1.0e-8", kPositive, "",
     "number that is added to the denominator"},
    {"optimizer.clip_grad_norm", "", To<&OptimizerPlan::clip_grad_norm>, kOptional, "1.0", kPositive, "",
     "largest norm of the gradients of all modules; larger gradients are scaled down to it"},

    {"gradients", "", Section<&Recipe::gradients>, kOptional, "", kAny, "",
     "how gradients are summed: in fp32, and in fp64 if parameters are fp64"},
    {"gradients.overlap_reduce", "", To<&GradientsRecipe::overlap_reduce>, kOptional, "false", kAny, "",
     "reduce gradients while the backward still runs"},
    {"gradients.overlap_gather", "", To<&GradientsRecipe::overlap_gather>, kOptional, "false", kAny, "",
     "gather parameters while the next forward already runs"},
    {"gradients.buckets", "", To<&GradientsRecipe::buckets>, kOptional, "1", kSize, "",
     "number of parts in which the gradients of a module are reduced"},

    {"precision", "", kMap, kOptional, "", kAny, "", "number formats"},
    {"precision.params", "", To<&Recipe::precision>, kOptional, "bf16", kAny, "bf16|fp32|fp64",
     "type of parameters and activations; with fp64 all numbers are fp64"},
    {"precision.deterministic", "", To<&Recipe::deterministic>, kOptional, "false", kAny, "",
     "GPU kernels that give the same bits in every run; attention is slower with them"},

    {"data", "", Section<&Recipe::data>, kRequired, "", kAny, "", "where samples come from"},
    {"data.kind", "", To<&DataRecipe::kind>, kOptional, "mock", kAny, "mock|webdataset|recorded|sources",
     "mock: made-up samples that can be learned; webdataset: tar shards of bytes and images; recorded: a stored batch; "
     "sources: a mixture of shards and ids"},
    {"data.seed", "", To<&DataRecipe::seed>, kOptional, "1234", kCountFromZero, "",
     "seed of all random numbers: weights, samples, position crops"},
    {"data.image_token", "", To<&DataRecipe::image_token>, kOptional, "", kCountFromZero, "",
     "token id whose places take image rows; required, except with tokenizer bytes, for mock data without an "
     "encoder, and for sources whose shards say it"},
    {"data.packed_documents", "", To<&DataRecipe::packed_documents>, kOptional, "false", kAny, "",
     "attention and Mamba-2 states stop at the end of each document; needs micro_samples 1"},
    {"data.balance", "", To<&DataRecipe::balance>, kOptional, "none", kAny, "none|images",
     "the order of samples within a step: as they are numbered, or so that all lanes have nearly equally many patches"},
    {"data.image_grids", "mock", To<&DataRecipe::image_grids>, kOptional, "", kSize, "",
     "[rows, columns] of patches that images are drawn from; required with an encoder"},
    {"data.min_images",
     "mock",
     To<&DataRecipe::min_images>,
     kOptional,
     "0",
     {Bound::kInclusive, Bound::kInclusive, 0, 3},
     "",
     "smallest number of images of a sample; at most max_images"},
    {"data.max_images",
     "mock",
     To<&DataRecipe::max_images>,
     kOptional,
     "3",
     {Bound::kInclusive, Bound::kInclusive, 0, 3},
     "",
     "largest number of images of a sample"},
    {"data.classes", "mock", To<&DataRecipe::classes>, kOptional, "8", kSize, "",
     "number of image classes, each with its own pattern and text"},
    {"data.text_tokens", "mock", To<&DataRecipe::text_tokens>, kOptional, "8", kSize, "",
     "number of text tokens of a class"},
    {"data.shards", "webdataset", To<&DataRecipe::shards>, kRequired, "", kAny, "",
     "tar files in order, absolute or relative to this file"},
    {"data.tokenizer", "webdataset", To<&DataRecipe::tokenizer>, kOptional, "bytes", kAny, "bytes",
     "bytes: ids 0-255 are bytes, 256 image, 257 padding, 258 end"},
    {"data.window", "webdataset", To<&DataRecipe::window>, kOptional, "64", kSize, "",
     "number of documents that are shuffled and packed together"},
    {"data.min_patches", "webdataset", To<&DataRecipe::min_patches>, kOptional, "4", kSize, "",
     "smallest number of patches that an image is resized to"},
    {"data.max_patches", "webdataset", To<&DataRecipe::max_patches>, kOptional, "256", kSize, "",
     "largest number of patches that an image is resized to"},
    {"data.resize", "webdataset", To<&DataRecipe::resize>, kOptional, "bilinear", kAny, "bilinear|bicubic",
     "filter that resizes images, with antialias; bicubic: pixels as those of transformers' image processors"},
    {"data.grid", "webdataset", To<&DataRecipe::grid>, kOptional, "ceil", kAny, "ceil|round_half_even",
     "how the patches that cover an image are counted; round_half_even: as transformers does for nemotron_h_omni"},
    {"data.sources", "sources", kListOfMaps, kRequired, "", kAny, "", "where documents come from"},
    {"data.sources[].name", "", To<&SourceRecipe::name>, kOptional, "", kAny, "",
     "name in tables, traces and index files; without it source_0, source_1, ... by position"},
    {"data.sources[].kind", "", To<&SourceRecipe::kind>, kRequired, "", kAny, "webdataset|tokens",
     "webdataset: tar shards of text and images; tokens: ids in PATH.bin and PATH.idx, as Megatron-LM writes them"},
    {"data.sources[].weight", "", To<&SourceRecipe::weight>, kOptional, "1", kPositive, "",
     "share of the samples that are of this source, in proportion to the other weights; at most 6 digits after the "
     "point"},
    {"data.sources[].shards", "webdataset", To<&SourceRecipe::shards>, kRequired, "", kAny, "",
     "tar files in order, absolute or relative to this file; {000..099} is a range, * any characters"},
    {"data.sources[].ignore", "webdataset", To<&SourceRecipe::ignore>, kOptional, "", kAny, "",
     "extensions of members that are not read, such as json, without a dot; without it they are errors"},
    {"data.sources[].path", "tokens", To<&SourceRecipe::path>, kRequired, "", kAny, "",
     "PATH of PATH.bin and PATH.idx, absolute or relative to this file"},
    {"data.tokenizer", "sources", To<&DataRecipe::tokenizer>, kOptional, "bytes", kAny, "bytes|ids",
     "bytes: ids 0-255 are bytes, 256 image, 257 padding, 258 end; ids: text is ids that were made before the run"},
    {"data.tokenizer_digest", "sources", To<&DataRecipe::tokenizer_digest>, kOptional, "", kAny, "",
     "SHA-256 of the tokenizer.json that the ids of all shards are of: 64 hex digits"},
    {"data.template_digest", "sources", To<&DataRecipe::template_digest>, kOptional, "", kAny, "",
     "SHA-256 of the chat template that the documents of all shards were written with: 64 hex digits"},
    {"data.pad_token", "sources", To<&DataRecipe::pad_token>, kOptional, "", kCountFromZero, "",
     "token id of padding; required with tokenizer ids, except where shards say it"},
    {"data.end_token", "sources", To<&DataRecipe::end_token>, kOptional, "", kCountFromZero, "",
     "token id that ends a document; required with tokenizer ids, except where shards say it"},
    {"data.shuffle", "sources", To<&DataRecipe::shuffle>, kOptional, "all", kCountFromOne, "all|none",
     "all: any document can follow any; none: the order of the shards; N: shards are shuffled, and N documents "
     "together inside a shard"},
    {"data.packing", "sources", To<&DataRecipe::packing>, kOptional, "first_fit", kAny, "first_fit|none",
     "first_fit: documents of a window share samples; none: one document a sample"},
    {"data.window", "sources", To<&DataRecipe::packing_window>, kOptional, "128", kSize, "",
     "number of documents that are packed together"},
    {"data.long", "sources", To<&DataRecipe::long_documents>, kOptional, "error", kAny, "error|cut|skip",
     "what happens with documents that are longer than a sample; cut: they go on in further pieces; skip: they are "
     "left out"},
    {"data.damaged", "sources", To<&DataRecipe::damaged>, kOptional, "error", kAny, "error|skip",
     "what happens with documents that cannot be read; skip: they are left out and counted"},
    {"data.most_damaged", "sources", To<&DataRecipe::most_damaged>, kOptional, "100", kCountFromZero, "",
     "most documents that `damaged: skip` leaves out, in all sources together; with more the run does not begin"},
    {"data.min_patches", "sources", To<&DataRecipe::min_patches>, kOptional, "4", kSize, "",
     "smallest number of patches that an image is resized to"},
    {"data.max_patches", "sources", To<&DataRecipe::max_patches>, kOptional, "256", kSize, "",
     "largest number of patches that an image is resized to"},
    {"data.resize", "sources", To<&DataRecipe::resize>, kOptional, "bilinear", kAny, "bilinear|bicubic",
     "filter that resizes images, with antialias; bicubic: pixels as those of transformers' image processors"},
    {"data.grid", "sources", To<&DataRecipe::grid>, kOptional, "ceil", kAny, "ceil|round_half_even",
     "how the patches that cover an image are counted; round_half_even: as transformers does for nemotron_h_omni"},
    {"data.index", "sources", To<&DataRecipe::index>, kOptional, "data_index", kAny, "",
     "folder of the index files, which `plan data index` writes; absolute or relative to this file"},
    {"data.path", "recorded", To<&DataRecipe::path>, kRequired, "", kAny, "",
     "safetensors file of the batch; sample i is row i modulo the number of rows"},

    {"initialize", "", Section<&Recipe::initialize>, kOptional, "", kAny, "",
     "weights to start from; without it they are drawn"},
    {"initialize.from", "", To<&InitializeRecipe::from>, kOptional, "", kAny, "",
     "one source of all weights: a safetensors file, a Hugging Face folder, a checkpoint, or a run directory (its "
     "newest "
     "checkpoint at the launch); absolute or relative to this file"},
    {"initialize.sources", "", kListOfMaps, kOptional, "", kAny, "",
     "in the place of `from`: a source of each module, or of each part of it"},
    {"initialize.sources[].for", "", To<&WeightSourceRecipe::part>, kRequired, "", kAny, "",
     "module, or part of an encoder: MODULE.backbone, MODULE.projection"},
    {"initialize.sources[].from", "", To<&WeightSourceRecipe::from>, kRequired, "", kAny, "",
     "a source, as in `initialize.from`; drawn: its weights are drawn, as without `initialize`"},
    {"initialize.ignore", "", To<&InitializeRecipe::ignore>, kOptional, "", kAny, "",
     "tensors of the sources, or parameters of a checkpoint, that may stay unused; NAME* is each that begins with "
     "NAME"},
    {"initialize.optimizer", "", To<&InitializeRecipe::optimizer>, kOptional, "false", kAny, "",
     "take the moments of the checkpoint too; without it they begin at zero"},
    {"initialize.schedule", "", To<&InitializeRecipe::schedule>, kOptional, "recipe", kAny, "recipe|checkpoint",
     "recipe: steps, samples and rates begin at the first; checkpoint: they go on where it stands"},

    {"checkpoint", "", Section<&Recipe::checkpoint>, kOptional, "", kAny, "", "saving and resuming"},
    {"checkpoint.every_steps", "", To<&CheckpointRecipe::every_steps>, kOptional, "", kCountFromOne, "",
     "steps between checkpoints; one more is written at the end. Without it a run keeps nothing"},
    {"checkpoint.keep_last", "", To<&CheckpointRecipe::keep_last>, kOptional, "", kCountFromOne, "",
     "how many of the newest checkpoints stay; without it all stay"},
    {"checkpoint.keep_every_steps", "", To<&CheckpointRecipe::keep_every_steps>, kOptional, "", kCountFromOne, "",
     "checkpoints of steps that this divides stay, too"},

    {"log", "", Section<&Recipe::log>, kOptional, "", kAny, "", "what is written while training"},
    {"log.every_steps", "", To<&LogRecipe::every_steps>, kOptional, "1", kCountFromOne, "",
     "steps between two printed lines; metrics.jsonl has every step"},

    {"lints", "", kLintLevels, kOptional, "", kAny, "error|warn|off",
     "levels of lints by number; `plan explain` lists the lints"},

    {"launch", "", Section<&Recipe::launch>, kOptional, "", kAny, "", "how ranks are started and watched"},
    {"launch.interface", "", To<&LaunchRecipe::interface>, kOptional, "", kAny, "",
     "network interface of rendezvous, Gloo and NCCL, such as ib0; default: the one that reaches the others"},
    {"launch.restarts", "", To<&LaunchRecipe::restarts>, kOptional, "0", kCountFromZero, "",
     "how often a run that failed is started again from its newest checkpoint"},
    {"launch.fallbacks", "", To<&LaunchRecipe::fallbacks>, kOptional, "", kAny, "",
     "recipes for fewer nodes, absolute or relative to this file; a restart takes the first that fits"},
    {"launch.deadline", "", Section<&LaunchRecipe::deadline>, kOptional, "", kAny, "",
     "when an instruction counts as hung: after the largest of these"},
    {"launch.deadline.floor", "", To<&DeadlineRecipe::floor>, kOptional, "600.0", kPositive, "",
     "seconds that every instruction is given"},
    {"launch.deadline.first_step", "", To<&DeadlineRecipe::first_step>, kOptional, "1800.0", kPositive, "",
     "the floor until the first step is done"},
    {"launch.deadline.factor", "", To<&DeadlineRecipe::factor>, kOptional, "20.0", kFromOne, "",
     "multiple of the estimated time: of the instruction, or of a step where it waits for other ranks"},
    {"launch.slurm", "", Section<&LaunchRecipe::slurm>, kOptional, "", kAny, "", "options for sbatch"},
    {"launch.slurm.partition", "", To<&SlurmRecipe::partition>, kOptional, "", kAny, "", "Slurm partition"},
    {"launch.slurm.account", "", To<&SlurmRecipe::account>, kOptional, "", kAny, "", "Slurm account"},
    {"launch.slurm.qos", "", To<&SlurmRecipe::qos>, kOptional, "", kAny, "", "Slurm quality of service"},
    {"launch.slurm.constraint", "", To<&SlurmRecipe::constraint>, kOptional, "", kAny, "", "features of the nodes"},
    {"launch.slurm.time", "", To<&SlurmRecipe::time>, kOptional, "", kAny, "",
     "wall time of one job, in quotes: MINUTES, HOURS:MINUTES:SECONDS or DAYS-HOURS:MINUTES:SECONDS"},
    {"launch.slurm.container", "", To<&SlurmRecipe::container>, kOptional, "", kAny, "",
     "container image in which nodes run their ranks (pyxis)"},
    {"launch.slurm.mounts", "", To<&SlurmRecipe::mounts>, kOptional, "", kAny, "",
     "folders that the container sees, as FROM:TO[:FLAGS]"},
};

constexpr GoneKey kGoneKeys[] = {
    {"models.<name>.projector.kind", "delete it: every projector is norm, linear, squared ReLU, linear"},
    {"optimizer.name", "delete it: the optimizer is always AdamW"},
    {"gradients.reduce_dtype",
     "delete it: gradients are summed in fp32, and in fp64 if parameters are fp64; summed in bf16, the loss curve "
     "would "
     "depend on the layout"},
};

// "models.<name>.moe.ffn" -> "models.<name>.moe"
std::string_view ParentOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

}  // namespace

bool KeyRange::Holds(double value) const { return BrokenBound(value).empty(); }

std::string KeyRange::Text() const {
  // All bounds are whole numbers. As doubles, StrCat would write 16777216 as 1.67772e+07.
  const auto low_text = static_cast<int64_t>(low), high_text = static_cast<int64_t>(high);
  if (low_bound == Bound::kInclusive && high_bound == Bound::kInclusive) return Cat(low_text, " to ", high_text);
  std::vector<std::string> bounds;
  if (low_bound == Bound::kInclusive) bounds.push_back(Cat("at least ", low_text));
  if (low_bound == Bound::kExclusive) bounds.push_back(Cat("above ", low_text));
  if (high_bound == Bound::kInclusive) bounds.push_back(Cat("at most ", high_text));
  if (high_bound == Bound::kExclusive) bounds.push_back(Cat("below ", high_text));
  return absl::StrJoin(bounds, ", ");
}

std::string KeyRange::BrokenBound(double value) const {
  const auto low_text = static_cast<int64_t>(low), high_text = static_cast<int64_t>(high);
  if (low_bound == Bound::kInclusive && !(value >= low)) return Cat("at least ", low_text);
  if (low_bound == Bound::kExclusive && !(value > low)) return Cat("above ", low_text);
  if (high_bound == Bound::kInclusive && !(value <= high)) return Cat("at most ", high_text);
  if (high_bound == Bound::kExclusive && !(value < high)) return Cat("below ", high_text);
  return "";
}

std::span<const KeySpec> RecipeKeys() { return kKeys; }

// The searches are linear: the table is small, and a recipe is read once.
const KeySpec* FindKey(std::string_view map_path, std::string_view word, std::string_view kind) {
  for (const KeySpec& spec : kKeys) {
    if (WordOf(spec) == word && ParentOf(spec.path) == map_path && (spec.kind.empty() || spec.kind == kind))
      return &spec;
  }
  return nullptr;
}

std::span<const GoneKey> GoneKeys() { return kGoneKeys; }

const GoneKey* FindGoneKey(std::string_view map_path, std::string_view word) {
  for (const GoneKey& gone : kGoneKeys) {
    if (gone.path == Cat(map_path, ".", word)) return &gone;
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

std::string KindOf(const YamlNode& map, std::string_view map_path) {
  if (const YamlEntry* kind = map.Find("kind")) return kind->value.text;
  const KeySpec* spec = FindKey(map_path, "kind", "");
  return spec != nullptr ? std::string(spec->default_text) : "";
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
